#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ask_postgres.py CONNECTION: the example postgres, asked as its users would, also by many at once; for postgres.sh."""
import os, sys
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
from serving import ask_status, ask_todo, start

server, url = start(os.environ['HAFT_BUILD_DIR'] + '/examples/http/postgres', sys.argv[1])
ask_todo(url, wrong=[b'{"what"', b'{}', b''])
with ThreadPoolExecutor(16) as many:
    bodies = [b'{"what": "entry %d"}' % i for i in range(100)]
    assert {status for status, _ in many.map(lambda body: ask_status(url + '/todo', data=body), bodies)} == {201}
assert ask_status(url + '/todo')[1].count(b'entry') == 100
assert ask_status(url + '/todo/none', 'DELETE')[0] == 400
server.terminate()
sys.exit(server.wait())
