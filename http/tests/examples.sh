#!/bin/sh
# SPDX-License-Identifier: MIT
# The examples of examples/http, in C and in C++, each asked as their users would, and then told to stop.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 - "$HAFT_BUILD_DIR/examples/http" "$work" <<'END'
import os, socket, subprocess, sys, time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

examples, work = sys.argv[1:]


def start(*command):
    for attempt in range(5):
        with socket.socket() as free:
            free.bind(('localhost', 0))
            port = free.getsockname()[1]
        server = subprocess.Popen([*command, str(port)])
        while server.poll() is None:
            try:
                socket.create_connection(('localhost', port)).close()
                return server, f'http://localhost:{port}'
            except OSError:
                time.sleep(0.02)
    sys.exit(f'{command} does not listen')


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


with open(work + '/a.txt', 'w') as file:
    file.write('from a file\n')
for kind in ['', '_cpp']:
    for name, arguments, ask in [('files', [work], ask_files), ('events', [], ask_events)]:
        program = f'{examples}/{name}{kind}'
        if kind == '' or os.path.exists(program):
            server, url = start(program, *arguments)
            ask(url)
            server.terminate()
            assert server.wait() == 0
END
