#!/bin/sh
# SPDX-License-Identifier: MIT
# The page of the examples chat, in C and in C++, in Chromium: two windows that get each other's messages. With HAFT_SCREENSHOT,
# the name of a file, the last window is drawn there.
set -eu
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
  echo 'there is no Chromium'
  exit 77
}
work=$(mktemp -d)
# (What Chromium has begun may still write there for a moment.)
trap 'rm -rf "$work" 2>/dev/null || { sleep 1; rm -rf "$work"; }' EXIT
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$HAFT_SOURCE_DIR/http/tests python3 - "$browser" "$HAFT_BUILD_DIR/examples/http" \
  "$work" 2>"$work/log" <<'END' || { status=$?; cat "$work/log"; exit $status; }
import atexit, base64, json, os, signal, subprocess, sys, time

from serving import start

browser, examples, work = sys.argv[1:]


class Browser:
    """Spoken to by Chromium's protocol for developers, over two pipes, which it knows as 3 and 4."""

    def __init__(self):
        their_input, self.output = os.pipe()
        self.input, their_output = os.pipe()
        command = ('exec 3<&%d 4>&%d; exec "$@"' % (their_input, their_output))
        self.process = subprocess.Popen(
            ['bash', '-c', command, 'sh', browser, '--headless', '--no-sandbox', '--disable-gpu',
             '--remote-debugging-pipe', '--user-data-dir=' + work, 'about:blank'],
            pass_fds=[their_input, their_output], start_new_session=True)
        atexit.register(os.killpg, self.process.pid, signal.SIGKILL)
        os.close(their_input)
        os.close(their_output)
        self.answers = os.fdopen(self.input, 'rb')
        self.number = 0

    def ask(self, method, session=None, **parameters):
        self.number += 1
        question = {'id': self.number, 'method': method, 'params': parameters}
        if session is not None:
            question['sessionId'] = session
        os.write(self.output, json.dumps(question).encode() + b'\0')
        while True:
            text = b''
            while not text.endswith(b'\0'):
                byte = self.answers.read(1)
                if byte == b'':
                    sys.exit('the browser has ended')
                text += byte
            answer = json.loads(text[:-1])
            if answer.get('id') == self.number:
                return answer['result']

    def open(self, url):
        target = self.ask('Target.createTarget', url=url)['targetId']
        return self.ask('Target.attachToTarget', targetId=target, flatten=True)['sessionId']

    def until(self, session, expression):
        for _ in range(600):
            answer = self.ask('Runtime.evaluate', session, expression=expression)
            if answer['result'].get('value') is True:
                return
            time.sleep(0.05)
        sys.exit(expression + ' has not become true')


chromium = Browser()
for program in [examples + '/chat', examples + '/chat_cpp']:
    if not os.path.exists(program):
        continue
    server, url = start(program)
    windows = [chromium.open(url), chromium.open(url)]
    for window in windows:
        chromium.until(window, 'typeof socket === "object" && socket.readyState !== 0')
    if chromium.ask('Runtime.evaluate', windows[0], expression='socket.readyState')['result']['value'] != 1:
        server.terminate()
        sys.exit(77)  # built without WebSocket
    for text, window in zip(['Hello from one <b>window</b>', 'and from the other \u20ac'], windows):
        chromium.until(window, f'form.text.value = {json.dumps(text)}; form.requestSubmit(); true')
        for other in windows:
            chromium.until(other, f'list.lastChild !== null && list.lastChild.textContent === {json.dumps(text)}')
    if 'HAFT_SCREENSHOT' in os.environ:
        picture = chromium.ask('Page.captureScreenshot', windows[1])['data']
        with open(os.environ['HAFT_SCREENSHOT'], 'wb') as file:
            file.write(base64.b64decode(picture))
    server.terminate()
    assert server.wait() == 0
chromium.ask('Browser.close')
END
