"""Annotations by which a pod says how its node plays it; ``docs/reference/node-annotations.md``."""

from __future__ import annotations

from typing import Final

from moorage.api.pod import Pod

START_SECONDS: Final = "moorage.dev/start-seconds"
RUN_SECONDS: Final = "moorage.dev/run-seconds"
EXIT_CODE: Final = "moorage.dev/exit-code"
STOP_SECONDS: Final = "moorage.dev/stop-seconds"

_NUMBERS: Final = (START_SECONDS, RUN_SECONDS, STOP_SECONDS, EXIT_CODE)
_NUMBER_LIMIT: Final = 1e9  # a guess: 30 years are enough, and nanoseconds still fit 64 bits


def number(pod: Pod, annotation: str) -> float | None:
    """Read an annotation that is a number, at least 0; None if absent or no such number."""
    try:
        value = float(pod.metadata.annotations.get(annotation, ""))
    except ValueError:
        return None
    return value if 0 <= value < _NUMBER_LIMIT else None


def faults(pod: Pod) -> list[str]:
    """Return a sentence for each annotation of the pod that cannot be read."""
    told = pod.metadata.annotations
    return [
        f"{name}: {told[name]!r} is no number >= 0; ignored"
        for name in _NUMBERS
        if name in told and number(pod, name) is None
    ]
