#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""collector.py PORT_FILE: a collector of OpenTelemetry that prints what it gets, of two messages: it takes the first, and
refuses the second. Its port is in the file."""
import http.server
import json
import os
import sys

STATUSES = [200, 503]


class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json", self.headers
        for resource in message["resourceSpans"]:
            names = {one["key"]: one["value"] for one in resource["resource"]["attributes"]}
            for span in resource["scopeSpans"][0]["spans"]:
                assert len(span["traceId"]) == 32 and len(span["spanId"]) == 16 and int(span["traceId"], 16), span
                assert 10**18 < int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]), span
                print(names["service.name"]["stringValue"], span["kind"], span["name"], self.headers["Key"], flush=True)
        answer = b"{}" if STATUSES[0] == 200 else b"not now"
        self.send_response(STATUSES.pop(0))
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
with open(sys.argv[1] + ".new", "w", encoding="utf-8") as file:
    file.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
while STATUSES:
    server.handle_request()
