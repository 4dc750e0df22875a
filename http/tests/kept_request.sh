#!/bin/sh
# SPDX-License-Identifier: MIT
# The examples kept_request in C and C++: an order that the shop fails at is kept, is answered again without shop and
# warehouse, and becomes a test, which passes once the bug is mended.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$HAFT_SOURCE_DIR/http/tests python3 - "$HAFT_BUILD_DIR/examples/http" "$work" \
  "$HAFT_SOURCE_DIR" <<'END'
import os, stat, subprocess, sys

from serving import ask_status, start

examples, work, source = sys.argv[1:]
tool = [sys.executable, source + '/tools/haft-replay']
plain = {name: value for name, value in os.environ.items() if not name.startswith('HAFT_IO_')}


def output(*command, code=0, **environment):
    done = subprocess.run(command, capture_output=True, text=True, env={**plain, **environment})
    assert done.returncode == code, (command, done)
    return done.stdout + done.stderr


for name in 'kept_request', 'kept_request_cpp':
    program, folder, test = f'{examples}/{name}', f'{work}/{name}', f'{work}/test_{name}'
    if not os.path.exists(program):
        continue
    warehouse, place = start(program, stderr=subprocess.DEVNULL)
    shop, url = start(program, place, folder, stderr=subprocess.DEVNULL)
    command = shop.args
    for order, status in ('1', 200), ('7', 500), ('2', 200):
        assert ask_status(f'{url}/orders/{order}')[0] == status, order
    shop.kill(), warehouse.kill()
    shop.wait(), warehouse.wait()
    [kept] = os.listdir(folder)
    kept = f'{folder}/{kept}'
    assert stat.S_IMODE(os.stat(kept).st_mode) == 0o600
    shown = output(*tool, kept)
    for words in 'GET /orders/7 HTTP/1.1', '---- Its answer: 500', 'a connection for a question', 'wrapping':
        assert words in shown, shown
    said = output(*command, HAFT_IO_REPLAY=kept)
    assert 'the replay of GET /orders/7 is answered as it was: as expected' in said, said
    said = output(*command, HAFT_IO_REPLAY=kept, HAFT_IO_REPLAY_EXPECTS='success', code=1)
    assert 'is answered as it was: not as expected' in said, said
    said = output(program, 'no URL', folder, command[-1], HAFT_IO_REPLAY=kept, code=1)
    assert 'asked for less than it did: the record still has a connection' in said, said

    assert 'add_test(NAME' in output(*tool, '--as-test', '-o', test, kept)
    assert stat.S_IMODE(os.stat(f'{test}/record.haft').st_mode) == 0o600
    output(f'{test}/run.sh', *command, code=1)
    output(f'{test}/run.sh', code=1)  # the command that was recorded
    output(f'{test}/run.sh', EXPECTS='500')
    assert 'is there already' in output(*tool, '--as-test', '-o', test, kept, code=1)
with open(kept, 'rb') as file:
    of_terminal = file.read().replace(b'User-Agent', b'User\x1bAgent')
with open(f'{work}/of_terminal', 'wb') as file:
    file.write(of_terminal)
assert 'User\\x1bAgent' in output(*tool, f'{work}/of_terminal')
assert 'no record' in output(*tool, tool[1], code=1)
if os.path.exists('/dev/full'):
    with open('/dev/full', 'wb') as full:
        done = subprocess.run([*tool, kept], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, 'haft-replay: standard output: No space left on device\n'), done
END

# The bug is mended: the test passes.
[ -n "${CC:-}" ] || exit 0
sed 's|return -EINVAL;|continue;|' "$HAFT_SOURCE_DIR/examples/http/kept_request.c" >"$work/mended.c"
# shellcheck disable=SC2086 # several options
$CC -std=gnu11 -fexceptions -I"$HAFT_SOURCE_DIR/core/include" -I"$HAFT_SOURCE_DIR/io/include" \
  -I"$HAFT_SOURCE_DIR/http/include" "$work/mended.c" -o "$work/mended" \
  -L"$HAFT_BUILD_DIR/http" -L"$HAFT_BUILD_DIR/io" -L"$HAFT_BUILD_DIR/core" -lhaft-http -lhaft-io -lhaft -pthread
LD_LIBRARY_PATH=$HAFT_BUILD_DIR/http:$HAFT_BUILD_DIR/io:$HAFT_BUILD_DIR/core
LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$HAFT_BUILD_DIR/http/tls
export LD_LIBRARY_PATH
EXPECTS=success "$work/test_kept_request/run.sh" "$work/mended" http://warehouse.example "$work" 8080 2>"$work/said" || { cat "$work/said"; exit 1; }
grep -q 'is answered otherwise: as expected' "$work/said"
grep -q 'built anew' "$work/said" && exit 1
exit 0
