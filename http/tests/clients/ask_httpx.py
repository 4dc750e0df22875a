# SPDX-License-Identifier: MIT
"""Whether Python's httpx gets the answers of early.c, early.go or early.mjs, which come before its body was sent:
pip install 'httpx[http2]', then python3 ask_httpx.py PORT [TIMES [SIZE...]]. A row is a size, with its length told or
not; a cell has what came, and how often."""
import collections
import sys
import time

import httpx

PIECE = bytes(65536)


def pieces(size):
    while size > 0:
        yield PIECE[:size]
        size -= len(PIECE)


def ask(port, version, path, size, is_told):
    body = bytes(size) if is_told else pieces(size)
    begun = time.monotonic()
    with httpx.Client(http1=version == 1, http2=version == 2, timeout=5, trust_env=False) as client:
        try:
            answer = client.post(f'http://127.0.0.1:{port}{path}', content=body)
            said = str(answer.status_code) if answer.text else f'{answer.status_code} without its body'
        except httpx.HTTPError as failure:
            said = type(failure).__name__
    return said + (' after 5 s' if time.monotonic() - begun >= 4.5 else '')


def main(port, times=20, *sizes):
    print(f'httpx {httpx.__version__}, {times} times each')
    for version in 1, 2:
        for path in '/refuse', '/part', '/all':
            for size in [int(size) for size in sizes] or [0, 1, 1000, 70000, 3000000, 100000000]:
                for is_told in True, False:
                    came = collections.Counter(ask(port, version, path, size, is_told) for _ in range(int(times)))
                    told = 'told' if is_told else 'not told'
                    print(f'HTTP/{version} {path:8}{size:>10} {told:9}' +
                          ', '.join(f'{many} {what}' for what, many in came.items()), flush=True)


main(*sys.argv[1:])
