#!/bin/sh
# SPDX-License-Identifier: MIT
# The examples https, in C and in C++: a client that trusts their certificate is answered, and gets the next one after
# SIGHUP; SIGTERM ends them well.
set -eu
command -v openssl >/dev/null && command -v python3 >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$HAFT_SOURCE_DIR/http/tests python3 - "$HAFT_BUILD_DIR/examples/http" "$work" <<'END'
import os, signal, ssl, subprocess, sys
from urllib.request import urlopen

from serving import start

examples, work = sys.argv[1:]
chain, key = work + '/chain.pem', work + '/key.pem'


def make(name):
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days',
                    '2', '-subj', '/CN=' + name, '-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out',
                    chain], check=True, capture_output=True)
    return ssl.create_default_context(cafile=chain)


for name in ['https', 'https_cpp']:
    program = f'{examples}/{name}'
    if not os.path.exists(program):
        continue
    first = make('first')
    server, url = start(program, chain, key, scheme='https', stderr=subprocess.PIPE)
    assert urlopen(url, context=first).read() == b'Hello over TLSv1.3\n'
    second = make('second')
    server.send_signal(signal.SIGHUP)
    assert server.stderr.readline() == b'reloaded\n'
    assert urlopen(url, context=second).read() == b'Hello over TLSv1.3\n'
    try:
        urlopen(url, context=first)
        sys.exit('the old certificate is still used')
    except OSError:
        pass
    os.unlink(chain)
    server.send_signal(signal.SIGHUP)
    assert b'chain.pem: No such file or directory' in server.stderr.readline()
    assert urlopen(url, context=second).read() == b'Hello over TLSv1.3\n'
    server.terminate()
    assert server.wait() == 0, server.returncode
END
