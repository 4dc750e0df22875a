# SPDX-License-Identifier: MIT
"""A web server of Python's library, with a thread for each request, and a hundred threads that ask it at once. It knows
nothing of Haft:

    python3 pages.py                   two hundred threads of the system
    haft-threads python3 pages.py      tasks, all on one thread
"""
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import ProxyHandler, build_opener

CLIENTS = 100
all_are_here = threading.Barrier(CLIENTS)


class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        all_are_here.wait()
        text = f"page {self.path[1:]}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = CLIENTS
    daemon_threads = True


def ask(number):
    time.sleep(0.001)
    address = f"http://127.0.0.1:{server.server_port}/{number}"
    with build_opener(ProxyHandler({})).open(address) as answer:
        return answer.read().decode()


server = Server(("127.0.0.1", 0), Page)
threading.Thread(target=server.serve_forever).start()
with ThreadPoolExecutor(CLIENTS) as clients:
    pages = list(clients.map(ask, range(CLIENTS)))
server.shutdown()
print(f"{len(pages)} pages, from {pages[0]!r} to {pages[-1]!r}")
