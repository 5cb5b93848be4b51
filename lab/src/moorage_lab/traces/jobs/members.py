"""The moment at which the members of a job run: there its run time begins."""

from __future__ import annotations

from collections.abc import Callable

from moorage_lab.traces.jobs.labels import Key, key_of, members_of
from moorage_lab.traces.records import PodRecord


class MemberStarts:
    """Starts the run time of a job's pods when as many members run as its labels say.

    Parameters
    ----------
    on_start
        Called with each pod whose run time starts.
    """

    def __init__(self, on_start: Callable[[PodRecord], None]) -> None:
        self._on_start = on_start
        self._present: dict[Key, set[str]] = {}
        self._waiting: dict[Key, list[PodRecord]] = {}

    def place_member(self, record: PodRecord) -> None:
        """Take in a pod that has got a node."""
        key = key_of(record.pod)
        present = self._present.setdefault(key, set())
        present.add(record.pod.name)
        waiting = self._waiting.setdefault(key, [])
        waiting.append(record)
        if len(present) >= members_of(record.pod.metadata.labels):
            self._waiting[key] = []
            for each in waiting:
                self._on_start(each)

    def lose_member(self, record: PodRecord) -> None:
        """Take in a pod that is gone without being completed."""
        key = key_of(record.pod)
        if key in self._present:
            self._present[key].discard(record.pod.name)
            self._waiting[key] = [each for each in self._waiting[key] if each is not record]
