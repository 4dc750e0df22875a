# SPDX-License-Identifier: MIT
"""Spans for a collector of OpenTelemetry: the JSON encoding of OTLP/HTTP, version 1."""

import hashlib
import json
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

from haft_events import Reader, SPAN, SPAN_PARENT, Trace, TRACE_LOW, Unusable, trace_id

SERVER, INTERNAL = 2, 1  # SpanKind
ERROR = 2  # StatusCode
A_TIME = 512  # spans of one message


def attribute(key, value):
    return {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}


class Exported(Reader):
    def __init__(self, trace):
        self.spans = []
        super().__init__(trace)

    def ids_of(self, task, span):
        """Its trace, and its own; made up, the same each time, where the program has told none."""
        made = hashlib.sha256(f"{self.trace.process} {self.trace.date_first} {task.number} {span.since}".encode())
        own = f"{span.ids[SPAN]:016x}" if SPAN in span.ids else made.hexdigest()[:16]
        if TRACE_LOW in span.ids:
            return trace_id(span), own
        return (self.ids_of(task, span.outer)[0] if span.outer else made.hexdigest()[16:48]), own

    def span(self, task, thread, span, begin, end):
        trace, own = self.ids_of(task, span)
        made = {"traceId": trace, "spanId": own, "name": span.name, "kind": INTERNAL,
                "startTimeUnixNano": str(self.trace.date_first + int(begin)),
                "endTimeUnixNano": str(self.trace.date_first + int(end)), "attributes": []}
        if span.outer is not None:
            made["parentSpanId"] = self.ids_of(task, span.outer)[1]
        elif SPAN_PARENT in span.ids:
            made["parentSpanId"] = f"{span.ids[SPAN_PARENT]:016x}"
        request = re.fullmatch(r"([A-Z][A-Z-]*|\?)(?: (/.*))?", span.name) if span.outer is None else None
        if request and 100 <= span.value <= 599:
            made["kind"] = SERVER
            made["attributes"] = [attribute("http.request.method", request[1] if request[1] != "?" else "_OTHER"),
                                  attribute("http.response.status_code", span.value)]
            if request[2]:
                made["attributes"].append(attribute("http.route", request[2]))
            if span.value >= 500:
                made["status"] = {"code": ERROR}
        else:
            made["attributes"] = [attribute("haft.value", span.value)]
        made["attributes"].append(attribute("haft.task", task.name))
        self.spans.append(made)


def endpoint():
    ready = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    base = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")
    return ready or base.rstrip("/") + "/v1/traces"


def post(url, message, headers):
    request = urllib.request.Request(url, json.dumps(message).encode(), {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            rejected = json.loads(answer.read() or b"{}").get("partialSuccess") or {}
    except urllib.error.HTTPError as error:
        raise Unusable(f"{url} answers {error.code}: {error.read(200).decode(errors='replace').strip()}") from None
    except ValueError:
        raise Unusable(f"{url} does not answer in JSON: is it a collector's?") from None
    except urllib.error.URLError as error:
        raise Unusable(f"{url}: {error.reason}") from None
    if int(rejected.get("rejectedSpans", 0)):
        raise Unusable(f"{url} has refused {rejected['rejectedSpans']} spans: {rejected.get('errorMessage', '')}")


def otlp(options):
    trace = Trace(options.file)
    spans = Exported(trace).spans
    resource = {"attributes": [attribute("service.name", options.service), attribute("process.pid", trace.process)]}
    messages = [{"resourceSpans": [{"resource": resource, "scopeSpans": [
        {"scope": {"name": "haft"}, "spans": spans[first:first + A_TIME]}]}]} for first in range(0, len(spans), A_TIME)]
    if options.output is not None:
        with open(options.output, "w", encoding="utf-8") if options.output != "-" else sys.stdout as out:
            for message in messages:
                out.write(json.dumps(message) + "\n")
        return
    url = options.to or endpoint()
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise Unusable(f"{url} is no address that begins with http:// or https://")
    headers = dict(header.split(":", 1) for header in options.header if ":" in header)
    for message in messages:
        post(url, message, {name.strip(): value.strip() for name, value in headers.items()})
    print(f"{len(spans)} spans sent to {url}")
