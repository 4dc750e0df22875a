# SPDX-License-Identifier: MIT
"""Threads of Python, for run.sh: queues, a pool, a server with a thread for each connection."""
import concurrent.futures
import http.server
import os
import queue
import socket
import subprocess
import sys
import threading
import time

before = len(os.listdir("/proc/self/task"))
questions, answers, numbers = queue.Queue(), queue.Queue(), set()


def square():
    numbers.add(threading.get_native_id())
    while (number := questions.get()) is not None:
        time.sleep(0.0001)
        answers.put(number * number)


threads = [threading.Thread(target=square) for _ in range(50)]
for thread in threads:
    thread.start()
for number in list(range(200)) + [None] * len(threads):
    questions.put(number)
for thread in threads:
    thread.join()
print("squares", sum(answers.get() for _ in range(200)), "by", len(numbers), "thread of the system")

with concurrent.futures.ThreadPoolExecutor(20) as pool:
    print("pool", sum(pool.map(lambda number: number + 1, range(1000))))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, *_):
        pass


def ask(number):
    with socket.create_connection(server.server_address) as connection:
        connection.sendall(b"GET /%d HTTP/1.0\r\n\r\n" % number)
        answer = b""
        while part := connection.recv(100):
            answer += part
        return answer.endswith(b"/%d" % number)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
serving = threading.Thread(target=server.serve_forever)
serving.start()
with concurrent.futures.ThreadPoolExecutor(20) as pool:
    print("server", sum(pool.map(ask, range(200))))
server.shutdown()
serving.join()

own = threading.local()
event, condition, lock = threading.Event(), threading.Condition(), threading.RLock()
barrier, semaphore = threading.Barrier(10), threading.Semaphore(2)


def use_all(number):
    own.number = number
    event.wait()
    with lock, lock, semaphore:
        time.sleep(0.0001)
    barrier.wait()
    with condition:
        condition.wait_for(lambda: ready)
    return own.number == number


ready = False
with concurrent.futures.ThreadPoolExecutor(10) as pool:
    results = [pool.submit(use_all, number) for number in range(10)]
    event.set()
    time.sleep(0.001)
    with condition:
        ready = True
        condition.notify_all()
    print("locks", sum(result.result() for result in results))

children = []
with concurrent.futures.ThreadPoolExecutor(5) as pool:
    command = [sys.executable, "-c", "print(42)"]
    children = list(pool.map(lambda _: int(subprocess.check_output(command)), range(5)))
print("children", sum(children))
