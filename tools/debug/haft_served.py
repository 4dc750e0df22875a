# SPDX-License-Identifier: MIT
"""Servers of libhaft-http, their connections and requests."""
from haft_memory import Unreadable


class Server:
    """A server of libhaft-http that serves."""

    def __init__(self, process, address):
        self.process, self.address = process, address
        self.port = process.number(address, "server.port")
        self.is_stopping = process.byte(address, "server.stopping") != 0

    @staticmethod
    def all(process):
        server = process.word(process["&servers"]) if process.has("&servers") else 0
        while server != 0:
            yield Server(process, server)
            server = process.word(server, "server.next_served")

    def connections(self):
        link = self.process.word(self.address, "server.connections")
        while link != 0:
            yield Connection(self.process, link)
            link = self.process.word(link, "http_link.next")


class Connection:
    def __init__(self, process, link):
        self.process, self.link = process, link
        self.address = link - process["connection.link"]
        stream = process.word(link, "http_link.stream")
        self.descriptor = process.number(stream, "http_stream.descriptor")
        self.has_tls = process.word(stream, "http_stream.tls") != 0
        self.peer = ""
        if process.byte(stream, "http_stream.knows_peer") != 0:
            self.peer = process.string(stream + process["http_stream.peer"])
        self.is_idle = process.byte(link, "http_link.idle") != 0
        self.served = self.address + process["connection.served"]
        self.has_frames = process.word(link, "http_link.stop") != 0

    def requests(self):
        process = self.process
        if not self.has_frames:
            request = process.word(self.served, "served.request")
            return [Request(process, request)] if request != 0 else []
        requests = []
        stream = process.word(process.word(self.link, "http_link.argument"), "http2.frames.streams")
        while stream != 0 and len(requests) < 10000:
            requests.append(Request(process, stream + process["http2_request.request"],
                                    process.number(stream, "http2_stream.id")))
            stream = process.word(stream, "http2_stream.next")
        return requests

    def task(self):
        """The one that serves it; a task that rests has its record in the connection's."""
        by_runner, by_own = self.process.tasks_by("runner"), self.process.tasks_by("own")
        return (by_runner.get(self.address) or by_own.get(self.served) or [None])[0]


class Request:
    def __init__(self, process, address, stream=0):
        self.process, self.stream = process, stream
        content = process.read(address, process["request"])
        self.method = process.string(process.of(content, "request.method"))
        self.begun_at = process.signed(process.of(content, "request.begun_at"))
        self.status = process.number_of(content, "request.answer.status")
        self.served = process.of(content, "request.served")
        block, at, size = (process.of(content, "request.message." + name) for name in ("block", "target", "target_size"))
        self.target = ""
        if block != 0 and at != 0:
            try:
                self.target = process.read(block + at, min(size, 200)).decode(errors="replace")
            except Unreadable:
                pass

    def task(self):
        return self.process.tasks_by("own").get(self.served, [None])[0]
