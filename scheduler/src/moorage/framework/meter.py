"""The `Meter`, which the deciding half tells about the calls of extension points and plugins.

Neither `framework` nor `engine` reads a clock. Where calls are measured, the state of an attempt
carries a `Meter`, which has a clock; elsewhere it carries none.
"""

from __future__ import annotations

from typing import Final, Protocol

from moorage.framework.status import Code

PRE_FILTER: Final = "PreFilter"
FILTER: Final = "Filter"
POST_FILTER: Final = "PostFilter"
PRE_SCORE: Final = "PreScore"
SCORE: Final = "Score"
NORMALIZE: Final = "ScoreExtensionNormalize"
"""Extension points as kube-scheduler v1.36 spells them in metrics."""

NOT_TIMED: Final = -1
"""In place of a time, where a call is not timed."""


class Meter(Protocol):
    """Records the calls of one profile's plugins; every method must return quickly."""

    def sample(self) -> bool:
        """Whether the plugins of the attempt that begins are timed one by one."""
        ...

    def start(self) -> None:
        """Note that an extension point begins."""
        ...

    def lap(self, point: str, code: Code) -> None:
        """Note that an extension point has ended, and the next begins."""
        ...

    def meter_ns(self) -> int:
        """Return monotonic time, nanoseconds."""
        ...

    def called(self, plugin: str, point: str) -> None:
        """Count a call of a plugin that did not answer Skip."""
        ...

    def took(self, plugin: str, point: str, code: Code, *, since_ns: int) -> None:
        """Note how long one call of a plugin took."""
        ...


class _Silent:
    """`Meter` that records nothing."""

    def sample(self) -> bool:
        return False

    def start(self) -> None:
        pass

    def lap(self, point: str, code: Code) -> None:
        pass

    def meter_ns(self) -> int:
        return NOT_TIMED

    def called(self, plugin: str, point: str) -> None:
        pass

    def took(self, plugin: str, point: str, code: Code, *, since_ns: int) -> None:
        pass


SILENT: Final[Meter] = _Silent()
"""For cycles that are not measured."""
