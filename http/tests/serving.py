# SPDX-License-Identifier: MIT
"""A server for a test: a program whose last argument is the port."""
import socket, subprocess, sys, time


def start(*command, scheme='http', **options):
    for attempt in range(5):
        with socket.socket() as free:
            free.bind(('localhost', 0))
            port = free.getsockname()[1]
        server = subprocess.Popen([*command, str(port)], **options)
        while server.poll() is None:
            try:
                socket.create_connection(('localhost', port)).close()
                return server, f'{scheme}://localhost:{port}'
            except OSError:
                time.sleep(0.02)
    sys.exit(f'{command} does not listen')
