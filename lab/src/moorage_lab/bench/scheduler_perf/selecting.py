"""Which workloads of a file are run: by labels, and by name.

Source: kubernetes v1.36 test/integration/scheduler_perf/label_selector.go (``enabled``).
"""

from __future__ import annotations

import re
from collections.abc import Collection

from moorage.base.errors import UsageError


def has_labels(label_filter: str, labels: Collection[str]) -> bool:
    """Whether labels pass a filter.

    Parameters
    ----------
    label_filter
        Labels joined by commas: each must be there, or, after a ``-``, must not; a ``+`` before a
        label changes nothing.
    """
    for each in filter(None, (part.strip() for part in label_filter.split(","))):
        wanted = not each.startswith("-")
        if (each.lstrip("+-") in labels) != wanted:
            return False
    return True


class NameFilter:
    """Selects workloads by regular expressions, as ``go test -run`` does.

    Parameters
    ----------
    text
        Expressions joined by ``/``: for the test case, then for its workload; each has to be found
        somewhere in the name. "" selects everything.

    Raises
    ------
    UsageError
        An expression cannot be read.
    """

    def __init__(self, text: str) -> None:
        case, _, workload = text.partition("/")
        try:
            self._case, self._workload = re.compile(case), re.compile(workload)
        except re.error as error:
            raise UsageError(f"--filter {text}: not a regular expression: {error}") from error

    def selects(self, case: str, workload: str) -> bool:
        """Whether a workload of a test case is selected."""
        return bool(self._case.search(case) and self._workload.search(workload))
