# SPDX-License-Identifier: MIT
"""The parts that tests of whole programs share."""
import atexit, json, socket, subprocess, sys, time
from urllib.error import HTTPError
from urllib.request import Request, urlopen


def start(*command, scheme='http', **options):
    """A server that ends with the test: a program whose last argument is the port."""
    for attempt in range(5):
        with socket.socket() as free:
            free.bind(('localhost', 0))
            port = free.getsockname()[1]
        server = subprocess.Popen([*command, str(port)], **options)
        atexit.register(server.kill)
        while server.poll() is None:
            try:
                socket.create_connection(('localhost', port)).close()
                return server, f'{scheme}://localhost:{port}'
            except OSError:
                time.sleep(0.02)
    sys.exit(f'{command} does not listen')


def ask_status(url, method=None, data=None):
    try:
        with urlopen(Request(url, method=method, data=data)) as answer:
            return answer.status, answer.read()
    except HTTPError as error:
        return error.code, error.read()


def ask_todo(url, wrong=(b'{"what": 7}', b'{"what"', b'{}', b'')):
    """Asks for a to-do list, in JSON; entries that are wrong are refused."""
    status, body = ask_status(url + '/todo', data=b'{"what": "caf\\u00e9 \\"au lait\\""}')
    entry = json.loads(body)
    assert (status, entry['what']) == (201, 'café "au lait"'), body
    status, body = ask_status(url + '/todo')
    assert (status, json.loads(body)) == (200, [entry]), body
    for data in wrong:
        assert ask_status(url + '/todo', data=data)[0] == 400, data
    one = f'{url}/todo/{entry["id"]}'
    if ask_status(one, 'PATCH', b'{"done": true}')[0] != 405:
        assert json.loads(ask_status(url + '/todo')[1])[0]['done'] is True
    assert ask_status(f'{one}%20x', 'DELETE')[0] in (400, 404)
    assert ask_status(one, 'DELETE')[0] == 200 and ask_status(one, 'DELETE')[0] == 404
    assert json.loads(ask_status(url + '/todo')[1]) == []
