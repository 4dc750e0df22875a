#!/bin/sh
# SPDX-License-Identifier: MIT
# The example `service` as examples/http/deploy has it run: by a socket that systemd passes, told of what it does, and
# stopped without a request cut off. Where systemd's tools are missing the test plays their part.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
deploy=$HAFT_SOURCE_DIR/examples/http/deploy
if command -v systemd-analyze >/dev/null; then
  # A copy of the program that the unit starts: systemd-analyze looks whether it is there.
  sed "s|/usr/local/bin/service|$HAFT_BUILD_DIR/examples/http/service|" "$deploy/motto.service" >"$work/motto.service"
  cp "$deploy/motto.socket" "$work"
  said=$(systemd-analyze verify "$work/motto.service" "$work/motto.socket" 2>&1) || true
  if printf '%s\n' "$said" | grep -F motto; then
    echo 'a unit is wrong'
    exit 1
  fi
else
  echo 'the units are not verified: there is no systemd-analyze'
fi
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$HAFT_SOURCE_DIR/http/tests python3 - "$HAFT_BUILD_DIR/examples/http" "$work" <<'END'
import atexit, os, shutil, signal, socket, subprocess, sys
from urllib.request import urlopen

from serving import ask_status

examples, work = sys.argv[1:]
with open(work + '/motto', 'w') as file:
    file.write('Be kind.\nAnd more.\n')
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind(work + '/notify')
manager.settimeout(60)


def hear():
    while (word := manager.recv(100)) == b'WATCHDOG=1':
        pass
    return word.decode()


def ask(url):
    assert ask_status(url + '/') == (200, b'Be kind.\n')
    assert ask_status(url + '/ready') == (200, b'ready\n')


def end(server, url):
    """It says that it stops, goes on to answer meanwhile, and ends well."""
    server.send_signal(signal.SIGTERM)
    assert hear() == 'STOPPING=1'
    assert ask_status(url + '/ready') == (503, b'stopping\n') and ask_status(url + '/')[0] == 200
    server.send_signal(signal.SIGTERM)  # which spares the test the rest of the time
    assert server.wait() == 0


def start(command, environment, **options):
    server = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, **options)
    atexit.register(server.kill)
    return server


def free_port():
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        return free.getsockname()[1]


def be_systemd(program):
    """What systemd does: the socket is the descriptor 3, and the environment says so."""
    listener = socket.create_server(('127.0.0.1', 0))
    url = f'http://127.0.0.1:{listener.getsockname()[1]}'
    shell = f'exec 3<&{listener.fileno()}; LISTEN_PID=$$ exec "$0" "$@"'
    server = start(['sh', '-c', shell, program, work + '/motto', 'systemd'],
                   {'LISTEN_FDS': '1', 'NOTIFY_SOCKET': work + '/notify', 'WATCHDOG_USEC': '20000'},
                   pass_fds=[listener.fileno()])
    listener.close()
    assert hear() == 'READY=1'
    assert manager.recv(100) == b'WATCHDOG=1'
    ask(url)
    end(server, url)


def use_socket_activate(program):
    tool = shutil.which('systemd-socket-activate')
    if tool is None:
        print('not tried with systemd-socket-activate: it is not there')
        return
    port = free_port()
    server = start([tool, '-l', f'127.0.0.1:{port}', '-E', f'NOTIFY_SOCKET={work}/notify', program, work + '/motto',
                    'systemd'], {}, stderr=subprocess.PIPE)
    while b'Listening on' not in server.stderr.readline():
        assert server.poll() is None, 'systemd-socket-activate does not listen'
    url = f'http://127.0.0.1:{port}'
    ask(url)  # which starts it
    assert hear() == 'READY=1'
    end(server, url)


def use_systemd_run(program):
    """The whole manager, where one runs: the unit is `active` when the program has said so."""
    if subprocess.run(['systemctl', 'is-system-running'], capture_output=True).stdout.strip() not in (
            b'running', b'degraded') if shutil.which('systemctl') else True:
        print('not tried with systemd-run: systemd does not run here')
        return
    port, unit = free_port(), f'haft-test-{os.getpid()}'
    subprocess.run(['systemd-run', '--unit', unit, '-p', 'Type=notify', '-p', 'WatchdogSec=10', program,
                    work + '/motto', f'127.0.0.1:{port}'], check=True)
    try:
        ask(f'http://127.0.0.1:{port}')
    finally:
        subprocess.run(['systemctl', 'stop', unit], check=True)


for name in ['service', 'service_cpp']:
    if os.path.exists(f'{examples}/{name}'):
        be_systemd(f'{examples}/{name}')
        use_socket_activate(f'{examples}/{name}')
        use_systemd_run(f'{examples}/{name}')
        failed = subprocess.run([f'{examples}/{name}', work + '/missing', '127.0.0.1:0'], capture_output=True)
        assert failed.returncode == 1 and failed.stderr != b'', failed
END
