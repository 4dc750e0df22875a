#!/bin/sh
# SPDX-License-Identifier: MIT
# The examples of examples/http, in C and in C++, each asked as their users would, and then told to stop.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$HAFT_SOURCE_DIR/http/tests python3 - "$HAFT_BUILD_DIR/examples/http" "$work" <<'END'
import base64, json, os, socket, struct, subprocess, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from serving import ask_status, ask_todo, start

examples, work = sys.argv[1:]


def ask_files(url):
    whole = urlopen(url + '/a.txt')
    assert whole.read() == b'from a file\n' and whole.headers['Content-Type'].startswith('text/plain'), whole.headers
    part = urlopen(Request(url + '/a.txt', headers={'Range': 'bytes=5-5'}))
    assert part.status == 206 and part.read() == b'a', part.headers
    try:
        urlopen(Request(url + '/a.txt', headers={'If-None-Match': whole.headers['ETag']}))
        sys.exit('not 304')
    except HTTPError as error:
        assert error.code == 304, error


def ask_events(url):
    assert b'EventSource' in urlopen(url).read()
    streams = [urlopen(url + '/events') for _ in range(2)]
    urlopen(url + '/say', data=b'text=one+thing')
    for stream in streams:
        assert stream.headers['Content-Type'] == 'text/event-stream', stream.headers
        line = stream.readline()
        assert line == b'data: one thing\n', line
    streams[0].close()
    urlopen(url + '/say', data=b'text=other')
    assert [streams[1].readline() for _ in range(2)] == [b'\n', b'data: other\n']


def ask_lists(url, pages):
    def ask(method, path, user='Ada'):
        request = Request(url + path, method=method, headers={'X-User': user} if user else {})
        try:
            with urlopen(request) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, json.loads(error.read())['detail']
    assert ask('GET', '/todo', None) == (401, 'who are you?')
    assert ask('PUT', '/todo/tea')[0] == 201 and ask('PUT', '/todo/wine', 'Bob')[0] == 201
    assert ask('PUT', '/todo/tea') == (409, 'it is on the list already')
    assert ask('DELETE', '/todo/wine') == (404, 'there is no such thing to do')
    assert ask('PUT', '/todo/wine')[0] == 201 and ask('DELETE', '/todo/wine')[0] == 204
    assert ask('GET', '/todo') == (200, 'tea\n') and ask('GET', '/ready', None) == (200, 'ready\n')
    asked = Request(url + '/todo/x', method='OPTIONS',
                    headers={'Origin': 'https://lists.example', 'Access-Control-Request-Method': 'PUT'})
    assert urlopen(asked).headers['Access-Control-Allow-Origin'] == 'https://lists.example'
    assert 'route="/todo/{what}"' in ask('GET', '/metrics', None)[1]
    page = ask_unix(pages, '/debug/tasks')
    assert b"scope 'HTTP server'" in page and b"task 'save' waits for: a time" in page, page


def ask_list(url):
    assert ask_status(url + '/todo/tea', 'PUT')[0] == 201 and ask_status(url + '/todo/wine?done=yes', 'PUT')[0] == 201
    assert ask_status(url + '/todo') == (200, b'[ ] tea\n[x] wine\n')
    assert ask_status(url + '/todo/tea', 'DELETE')[0] == 204
    assert ask_status(url + '/todo/tea', 'DELETE') == (404, b'there is no such thing to do\n')


def ask_unix(path, target='/'):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(b'GET %s HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n' % target.encode())
        return connection.makefile('rb').read()


def ask_uploads(url, folder):
    assert b'multipart/form-data' in urlopen(url).read()
    form = b''.join(b'--x\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n' % part for part in [
        (b'title', b'', b'two files'), (b'files', b'; filename="../a.txt"', b'one'),
        (b'files', b'; filename="b.bin"', bytes(200000))]) + b'--x--\r\n'
    asked = Request(url, data=form, headers={'Content-Type': 'multipart/form-data; boundary=x'})
    told = urlopen(asked).read().decode()
    assert told == f'title: two files\n../a.txt is {folder}/1\nb.bin is {folder}/2\n', told
    assert sorted(os.listdir(folder)) == ['1', '2']
    with open(folder + '/1', 'rb') as one, open(folder + '/2', 'rb') as two:
        assert one.read() == b'one' and two.read() == bytes(200000)
    assert ask_status(url, data=b'no form')[0] == 415


def ask_tunnel(url, service):
    host, port = url.removeprefix('http://').split(':')

    def connect(target):
        connection = socket.create_connection((host, int(port)))
        connection.sendall(f'CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n'.encode())
        answers = connection.makefile('rb')
        status = answers.readline().split()[1]
        while answers.readline() != b'\r\n':
            pass
        return connection, answers, status
    assert connect('elsewhere.invalid:80')[2] == b'403'
    connection, answers, status = connect(service.removeprefix('http://'))
    assert status == b'200'
    connection.sendall(b'GET /a/ HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n')
    assert answers.read().endswith(b'<a href="b?c#d"><a href="/">')


class WebSocket:
    def __init__(self, url):
        host, port = url.removeprefix('http://').split(':')
        self.connection = socket.create_connection((host, int(port)))
        self.file = self.connection.makefile('rb')
        key = base64.b64encode(bytes(16)).decode()
        self.connection.sendall((f'GET /chat HTTP/1.1\r\nHost: {host}:{port}\r\nOrigin: {url}\r\n'
                                 'Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n'
                                 f'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n').encode())
        self.status = self.file.readline().split()[1]
        while self.file.readline() != b'\r\n':
            pass

    def say(self, opcode, data):
        self.connection.sendall(bytes([0x80 | opcode, 0x80 | len(data), 0, 0, 0, 0]) + data)

    def hear(self):
        first, size = struct.unpack('BB', self.file.read(2))
        return first & 15, self.file.read(size)


def ask_chat(url):
    assert b'WebSocket' in urlopen(url).read()
    guests = [WebSocket(url) for _ in range(3)]
    if guests[0].status == b'501':
        return  # built without WebSocket
    for guest in guests:  # each has joined when its first text has come back
        guest.say(1, b'here')
        while guest.hear() != (1, b'here'):
            pass
    guests[0].say(2, b'\xff is no text')
    guests[0].say(1, 'one thing €'.encode())
    for guest in guests:
        while (heard := guest.hear()) != (1, 'one thing €'.encode()):
            assert heard == (1, b'here'), heard
    guests[0].say(8, b'')
    assert guests[0].hear() == (8, b'')
    guests[1].file.close()
    guests[1].connection.close()
    guests[2].say(1, b'other')
    assert guests[2].hear() == (1, b'other')

    def hear_end():
        assert guests[2].hear() == (8, struct.pack('!H', 1001))
        guests[2].say(8, b'')
    return hear_end


class Service(BaseHTTPRequestHandler):
    """What the proxy and the crawler ask."""
    protocol_version = 'HTTP/1.1'
    pages = {'/': '<a href="/a/">a</a> <a href="http://elsewhere.invalid/">', '/a/': '<a href="b?c#d"><a href="/">',
             '/a/b?c': '<a href="../missing">', '/health': 'well'}
    down = False

    def log_message(self, *_):
        pass

    def send(self, status, type, body):
        self.send_response(status)
        self.send_header('Content-Type', type)
        self.send_header('Content-Length', len(body))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path in self.pages and not (self.server.down and self.path == '/health'):
            self.send(200, 'text/html', self.pages[self.path].encode())
        elif self.path == '/name':
            self.send(200, 'text/plain', str(self.server.server_port).encode())
        else:
            self.send(404, 'text/plain', b'missing')

    def read_chunks(self):
        while size := int(self.rfile.readline(), 16):
            piece = self.rfile.read(size + 2)[:-2]
            if self.server.came is not None:
                self.server.came.put(piece)
        self.rfile.readline()

    def do_POST(self):
        if 'Content-Length' in self.headers:
            self.rfile.read(int(self.headers['Content-Length']))
        else:
            self.read_chunks()
        self.send_response(200)
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        for piece in iter(self.server.to_go.get, b''):
            self.wfile.write(b'%x\r\n%s\r\n' % (len(piece), piece))
        self.wfile.write(b'0\r\n\r\n')


def start_service():
    service = ThreadingHTTPServer(('localhost', 0), Service)
    service.handle_error = lambda *_: None  # the proxy closes its connections at its end
    service.down, service.daemon_threads = False, True
    threading.Thread(target=service.serve_forever, daemon=True).start()
    return service, f'http://localhost:{service.server_port}'


def ask_proxy(url, services):
    names = {urlopen(url + '/name').read() for _ in range(4)}
    assert names == {str(service.server_port).encode() for service in services}, names
    came, to_go = Queue(), Queue()  # each piece arrives before the next one is sent
    for service in services:
        service.came, service.to_go = came, to_go
    host, port = url.removeprefix('http://').split(':')
    connection = socket.create_connection((host, int(port)))
    answers = connection.makefile('rb')
    connection.sendall(b'POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n')
    assert came.get() == b'ab'
    connection.sendall(b'1\r\nc\r\n0\r\n\r\n')
    assert came.get() == b'c'
    to_go.put(b'de')
    while answers.readline() != b'\r\n':
        pass
    assert answers.readline() == b'2\r\n' and answers.readline() == b'de\r\n'
    to_go.put(b'f')
    to_go.put(b'')
    assert [answers.readline() for _ in range(4)] == [b'1\r\n', b'f\r\n', b'0\r\n', b'\r\n']
    for service in services:
        service.came = None  # which drops what comes
    to_go.put(b'')
    assert ask_status(url + '/', data=2000000 * b'x') == (200, b'')
    services[0].down = True
    left = str(services[1].server_port).encode()
    while {urlopen(url + '/name').read() for _ in range(4)} != {left}:
        pass
    services[1].down = True
    while ask_status(url + '/name')[0] != 503:
        pass
    services[0].down = False
    while ask_status(url + '/name')[0] != 200:
        pass


def check_refused(*command, code=1):
    """It ends by itself, and says why."""
    ended = subprocess.run(command, stderr=subprocess.PIPE, timeout=60)
    assert ended.returncode == code and ended.stderr != b'', (command, ended)


with open(work + '/a.txt', 'w') as file:
    file.write('from a file\n')
for kind in ['', '_cpp']:
    for name, arguments, ask in [('files', [work], ask_files), ('events', [], ask_events), ('chat', [], ask_chat)]:
        program = f'{examples}/{name}{kind}'
        if kind == '' or os.path.exists(program):
            server, url = start(program, *arguments)
            hear_end = ask(url)
            check_refused(program, *arguments, url.rpartition(':')[2])
            server.terminate()
            if hear_end is not None:
                hear_end()
            assert server.wait() == 0
    files, todo = f'{examples}/files{kind}', f'{examples}/todo{kind}'
    if os.path.exists(files):
        check_refused(files, work + '/missing', '0')
    if os.path.exists(todo):
        check_refused(todo, work + '/missing/todo.db', '0')
        server, url = start(todo, f'{work}/todo{kind}.db')
        ask_todo(url)
        server.terminate()
        assert server.wait() == 0
if os.path.exists(examples + '/lists'):
    check_refused(examples + '/lists', code=2)
    arguments = examples + '/lists', work + '/lists', f'unix:{work}/pages'
    for _ in range(2):
        server, url = start(*arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        ask_lists(url, work + '/pages')
        server.terminate()
        assert server.wait() == 0
        assert 'Ada has added tea' in server.stderr.read().decode()
        with open(work + '/lists') as kept:
            assert sorted(line.split()[0] + line.split()[2] for line in kept) == ['Adatea', 'Bobwine']
        os.remove(work + '/lists')
for name, arguments, ask in [
        ('tutorial/list', [], ask_list),
        ('own_run', [f'unix:{work}/own'], lambda url: ask_unix(work + '/own').endswith(b' ticks\n') or sys.exit('own_run')),
        ('uploads', [work + '/uploads'], lambda url: ask_uploads(url, work + '/uploads'))]:
    if os.path.exists(f'{examples}/{name}'):
        os.makedirs(work + '/uploads', exist_ok=True)
        server, url = start(f'{examples}/{name}', *arguments)
        ask(url)
        server.terminate()
        assert server.wait() == 0, name
if os.path.exists(examples + '/tunnel'):
    service, service_url = start_service()
    server, url = start(examples + '/tunnel')
    ask_tunnel(url, service_url)
    server.terminate()
    assert server.wait() == 0
if os.path.exists(examples + '/proxy'):
    (first, first_url), (second, second_url) = start_service(), start_service()
    found = subprocess.run([examples + '/crawler', first_url], stdout=subprocess.PIPE, check=True).stdout
    assert found.decode() == '/: 200\n/a/: 200\n/a/../missing: 404\n/a/b?c: 200\n', found
    check_refused(examples + '/proxy', code=2)
    server, url = start(examples + '/proxy', first_url, second_url, stderr=subprocess.PIPE)
    check_refused(examples + '/proxy', first_url, url.rpartition(':')[2])
    ask_proxy(url, [first, second])
    server.terminate()
    assert server.wait() == 0
    log = server.stderr.read().decode()
    told = [line for line in log.splitlines() if ' well' in line]
    name = 'haft-http: %s is %s'
    assert told[:3] == [name % (first_url, 'not well: status 404'), name % (second_url, 'not well: status 404'),
                        name % (first_url, 'well')], log
END
