"""The traces of a run: made where the configuration asks for them, and sent to a collector."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage.config.own import Tracing
from moorage.observe.traces.attempts import Traces
from moorage.observe.traces.otlp import Exporter
from moorage.service.process.span_sender import SpanSender


class SentTraces:
    """Traces attempts as the configuration says, and sends the spans within its context.

    Parameters
    ----------
    tracing
        The settings; None traces nothing.
    clock
        The time of spans.

    Attributes
    ----------
    traces
        Makes the spans; None where nothing is traced.

    Raises
    ------
    UsageError
        OpenTelemetry is not installed.
    """

    def __init__(self, tracing: Tracing | None, clock: Clock) -> None:
        self.traces: Traces | None = None
        self._sender: SpanSender | None = None
        if tracing is None:
            return
        self._exporter = Exporter(tracing.endpoint)
        self._sender = sender = SpanSender(self._exporter)
        # Not from the seed: replicas may have the same seed, but never the same trace ids.
        rng = Streams().stream("traces")
        rate = tracing.sampling_rate_per_million or 0
        self.traces = Traces(
            clock, rng, rate_per_million=rate, emit=sender.queue_spans, counts=sender.counts
        )

    def __enter__(self) -> Self:
        if self._sender is not None:
            self._sender.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Send what waits, for at most a second."""
        if self._sender is not None:
            self._sender.close()
            self._exporter.close()
