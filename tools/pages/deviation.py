"""One row of the table of differences from kube-scheduler, which `deviations_table` lists."""

from __future__ import annotations

import msgspec


class Deviation(msgspec.Struct, frozen=True, kw_only=True):
    """One difference.

    Parameters
    ----------
    subject
        What it is about.
    upstream
        What kube-scheduler v1.36 does.
    here
        What moorage does.
    why
        The reason.
    back
        How to have kube-scheduler's way; "" where that is not available.
    """

    subject: str
    upstream: str
    here: str
    why: str
    back: str = ""
