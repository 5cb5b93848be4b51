"""Spans on their way to a collector: what it receives, and what is said when it cannot be used."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from moorage.base.errors import UsageError
from moorage.base.verbosity import V0
from moorage.observe.traces.otlp import Exporter, url_of
from moorage.observe.traces.span import Span

CALL = Span(
    trace_id=0xA,
    span_id=0xB,
    parent_id=0xC,
    name="API POST",
    start_ns=10,
    end_ns=20,
    attributes={"http.response.status_code": 409, "url.path": "/x"},
    failure="HTTP 409",
    is_call=True,
)


class Collector(HTTPServer):
    """A collector of this process, which keeps what it is sent."""

    def __init__(self, code: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.code = code
        self.paths: list[str] = []
        self.bodies: list[bytes] = []

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    @property
    def spans(self) -> list[Any]:
        read = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        return [
            span
            for each in read
            for resource in each.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


class _Handler(BaseHTTPRequestHandler):
    server: Any

    def do_POST(self) -> None:
        self.server.paths.append(self.path)
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.server.code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def collecting(code: int = 200) -> Iterator[Collector]:
    with Collector(code) as collector:
        thread = threading.Thread(target=collector.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield collector
        finally:
            collector.shutdown()
            thread.join()


def test_a_collector_gets_the_span_with_ids_times_kind_and_status() -> None:
    with collecting() as collector:
        exporter = Exporter(collector.endpoint)
        assert exporter([CALL])
        exporter.close()
        (span,) = collector.spans
    assert collector.paths == ["/v1/traces"]
    assert (span.trace_id.hex(), span.span_id.hex()) == (f"{0xA:032x}", f"{0xB:016x}")
    assert span.parent_span_id.hex() == f"{0xC:016x}"
    assert (span.name, span.kind, span.status.message) == ("API POST", 3, "HTTP 409")
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (10, 20)
    assert {each.key: each.value.WhichOneof("value") for each in span.attributes} == {
        "http.response.status_code": "int_value",
        "url.path": "string_value",
    }


def test_the_first_failure_is_told_and_the_next_success(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(V0)  # what is shown without -v
    with collecting(400) as collector:
        exporter = Exporter(collector.endpoint)
        assert [exporter([CALL]), exporter([CALL])] == [False, False]
        collector.code = 200
        assert exporter([CALL])
        exporter.close()
    own = [each.getMessage() for each in caplog.records if each.name.startswith("moorage")]
    assert [text.split(":")[0] for text in own] == [
        "the trace collector takes no spans",
        "the trace collector takes spans again",
    ]
    assert sum(each.levelno >= logging.WARNING for each in caplog.records) == 2


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("", ""),
        ("collector:4318", "http://collector:4318/v1/traces"),
        ("https://collector", "https://collector/v1/traces"),
        ("http://collector:9/own/path", "http://collector:9/own/path"),
    ],
)
def test_an_endpoint_without_a_path_has_the_path_of_the_protocol(endpoint: str, url: str) -> None:
    assert url_of(endpoint) == url


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)
    with pytest.raises(UsageError, match=r"pip install 'moorage\[otel\]'"):
        Exporter("")
