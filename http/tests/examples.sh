#!/bin/sh
# SPDX-License-Identifier: MIT
# The examples of examples/http, in C and in C++, each asked as their users would, and then told to stop.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$HAFT_SOURCE_DIR/http/tests python3 - "$HAFT_BUILD_DIR/examples/http" "$work" <<'END'
import base64, os, socket, struct, sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from serving import start

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
    guests[0].say(1, 'one thing €'.encode())
    for guest in guests:
        while (heard := guest.hear()) != (1, 'one thing €'.encode()):
            assert heard == (1, b'here'), heard
    guests[0].say(8, b'')
    assert guests[0].hear() == (8, b'')
    guests[1].connection.close()
    guests[2].say(1, b'other')
    assert guests[2].hear() == (1, b'other')

    def hear_end():
        assert guests[2].hear() == (8, struct.pack('!H', 1001))
        guests[2].say(8, b'')
    return hear_end


with open(work + '/a.txt', 'w') as file:
    file.write('from a file\n')
for kind in ['', '_cpp']:
    for name, arguments, ask in [('files', [work], ask_files), ('events', [], ask_events), ('chat', [], ask_chat)]:
        program = f'{examples}/{name}{kind}'
        if kind == '' or os.path.exists(program):
            server, url = start(program, *arguments)
            hear_end = ask(url)
            server.terminate()
            if hear_end is not None:
                hear_end()
            assert server.wait() == 0
END
