#!/bin/sh
# SPDX-License-Identifier: MIT
# The examples of examples/http, in C and in C++, each asked as their users would, and then told to stop.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/folder"
echo 'from a file' >"$work/folder/a.txt"

cat >"$work/files.py" <<'END'
import sys, urllib.request
url = f'http://localhost:{sys.argv[1]}/a.txt'
whole = urllib.request.urlopen(url)
assert whole.read() == b'from a file\n' and whole.headers['Content-Type'].startswith('text/plain'), whole.headers
part = urllib.request.urlopen(urllib.request.Request(url, headers={'Range': 'bytes=5-5'}))
assert part.status == 206 and part.read() == b'a', part.headers
try:
    urllib.request.urlopen(urllib.request.Request(url, headers={'If-None-Match': whole.headers['ETag']}))
    sys.exit('not 304')
except urllib.error.HTTPError as error:
    assert error.code == 304, error
END
cat >"$work/events.py" <<'END'
import sys, urllib.request
url = f'http://localhost:{sys.argv[1]}'
assert b'EventSource' in urllib.request.urlopen(url).read()
streams = [urllib.request.urlopen(url + '/events') for _ in range(2)]
urllib.request.urlopen(url + '/say', data=b'text=one+thing')
for stream in streams:
    assert stream.headers['Content-Type'] == 'text/event-stream', stream.headers
    line = stream.readline()
    assert line == b'data: one thing\n', line
streams[0].close()
urllib.request.urlopen(url + '/say', data=b'text=other')
assert [streams[1].readline() for _ in range(2)] == [b'\n', b'data: other\n']
END

# ask SCRIPT PROGRAM ARGUMENTS...: the server's last argument is a port.
ask() {
  script=$1
  shift
  for attempt in 1 2 3 4 5; do
    port=$((20000 + ($$ * 7 + attempt * 1009) % 30000))
    "$@" $port 2>"$work/log" &
    server=$!
    python3 - $port <<'END' && break
import socket, sys, time
for _ in range(200):
    try:
        socket.create_connection(('localhost', int(sys.argv[1]))).close()
        sys.exit(0)
    except OSError:
        time.sleep(0.05)
sys.exit(1)
END
    kill $server 2>/dev/null || true
    wait $server || true
  done
  python3 "$work/$script.py" $port
  kill $server
  wait $server || { cat "$work/log"; exit 1; }
}

examples=$HAFT_BUILD_DIR/examples/http
for kind in '' _cpp; do
  if [ -z "$kind" ] || [ -x "$examples/files$kind" ]; then
    ask files "$examples/files$kind" "$work/folder"
    ask events "$examples/events$kind"
  fi
done
