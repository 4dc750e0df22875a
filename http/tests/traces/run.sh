#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh PROGRAM: a trace of a server has a span for each request, with its method, its route and its status.
set -eu
program=$1
. "$HAFT_SOURCE_DIR/io/tests/traces/head.sh"
$tool record -o trace -- "$program" 2>/dev/null
$tool view -o trace.json trace >/dev/null
$check trace.json 'GET /users/{name}' GET PUT '?' read 'waits: a time'
$tool stats trace | sed -n 's/^  \([GP?].* = [0-9]*: [0-9]*\)  p50.*/\1/p' >spans
diff - spans <<'end'
? = 400: 1
GET = 404: 1
GET /users/{name} = 200: 2
PUT = 405: 1
end

# The spans that a collector of OpenTelemetry gets: the trace and the parent that the client has named, and what the request is.
$tool otlp -o spans trace
for words in '"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "[0-9a-f]*", "name": "GET /users/{name}", "kind": 2,' \
  '"parentSpanId": "b7ad6b7169203331"' '{"key": "http.request.method", "value": {"stringValue": "PUT"}}' \
  '{"key": "http.response.status_code", "value": {"intValue": "405"}}' \
  '{"key": "http.route", "value": {"stringValue": "/users/{name}"}}' '"stringValue": "_OTHER"'; do
  grep -q "$words" spans || { echo "not there: $words"; cat spans; exit 1; }
done
