"""Hands spans to OpenTelemetry's exporter: the only module that imports it (extra ``otel``)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias
from urllib.parse import urlunsplit

from moorage.base.errors import UsageError
from moorage.base.verbosity import V0
from moorage.base.version import __version__
from moorage.config.own import endpoint_parts
from moorage.observe.traces.span import Span

Export: TypeAlias = Callable[[Sequence[Span]], bool]
"""Sends spans, waiting for the answer; returns whether the collector took them."""

_PATH = "/v1/traces"  # OTLP over HTTP, where an endpoint names no path
_log = logging.getLogger(__name__)


class Exporter:
    """Sends spans by OTLP over HTTP, as protobuf.

    Parameters
    ----------
    endpoint
        The collector, as ``HOST:PORT`` or a URL; "" for ``OTEL_EXPORTER_OTLP_ENDPOINT`` of the
        environment, or ``http://localhost:4318``. Headers, certificates, compression and time
        limit come from the environment as well, and so do further resource attributes.

    Raises
    ------
    UsageError
        The extra is not installed.
    """

    def __init__(self, endpoint: str) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http import trace_exporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        except ImportError as error:
            raise UsageError(
                "tracing needs OpenTelemetry: pip install 'moorage[otel]', "
                "or remove tracing from MoorageConfiguration"
            ) from error
        # Any: the library is an extra, and its types are absent where it is.
        self._inner: Any = trace_exporter.OTLPSpanExporter(endpoint=url_of(endpoint) or None)
        self._inner_log = logging.getLogger(trace_exporter.__name__)
        self._resource = Resource.create(
            {"service.name": "moorage", "service.version": __version__}
        )
        self._scope = InstrumentationScope("moorage", __version__)
        self._fails = False

    def __call__(self, spans: Sequence[Span]) -> bool:
        """Send spans; return whether the collector took them."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        told = self._inner.export([self._readable(span) for span in spans])
        taken = bool(told is SpanExportResult.SUCCESS)
        if taken and self._fails:
            _log.log(V0, "the trace collector takes spans again")
        if not taken and not self._fails:
            _log.warning(
                "the trace collector takes no spans: they are dropped, and counted in "
                "moorage_trace_spans_total; the line of the exporter before this one says why"
            )
        # The library tells every failure; the first one is enough.
        self._fails = self._inner_log.disabled = not taken
        return taken

    def close(self) -> None:
        """Give up a call that waits to be repeated."""
        self._inner.shutdown()

    def _readable(self, span: Span) -> Any:
        """Return a span as the SDK's exporters read it."""
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
        from opentelemetry.trace.status import Status, StatusCode

        def context(span_id: int) -> SpanContext:
            flags = TraceFlags(TraceFlags.SAMPLED)
            return SpanContext(span.trace_id, span_id, is_remote=False, trace_flags=flags)

        return ReadableSpan(
            span.name,
            context(span.span_id),
            context(span.parent_id) if span.parent_id else None,
            resource=self._resource,
            attributes=dict(span.attributes),
            kind=SpanKind.CLIENT if span.is_call else SpanKind.INTERNAL,
            status=Status() if span.failure is None else Status(StatusCode.ERROR, span.failure),
            start_time=span.start_ns,
            end_time=span.end_ns,
            instrumentation_scope=self._scope,
        )


def url_of(endpoint: str) -> str:
    """Return the URL that spans are sent to; "" where the environment names it.

    Parameters
    ----------
    endpoint
        ``HOST:PORT``, as in Kubernetes' TracingConfiguration, or a URL of http or https.
    """
    if not endpoint:
        return ""
    parts = endpoint_parts(endpoint)
    return urlunsplit(parts._replace(path=_PATH) if parts.path in {"", "/"} else parts)
