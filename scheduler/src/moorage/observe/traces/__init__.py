"""Traces of attempts, as OpenTelemetry understands them.

`attempts` makes the spans of an attempt from its record, when the attempt ends. `otlp` hands spans
to OpenTelemetry's exporter. Nothing here waits, and no decision reads a span.
"""
