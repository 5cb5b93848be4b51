"""The report of ``moorage bench gang-arrivals``: the outcome for the jobs in each mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import msgspec

Mode: TypeAlias = Literal["trial", "permit", "default"]
MODES: Final[tuple[Mode, ...]] = ("trial", "permit", "default")

NODE_CPU: Final = 8
"""Pods of jobs for which a node has room."""


class ArrivalResult(msgspec.Struct, frozen=True):
    """The outcome for the jobs under one way of scheduling.

    Parameters
    ----------
    mode
        trial and permit: with Coscheduling; default: one pod at a time, without it.
    done, stuck
        Jobs that ended; jobs that had not started when no further change was possible.
    makespan_seconds
        Virtual time until the last job ended, or until the remaining jobs were known to be stuck.
    mean_wait_seconds
        Mean, over all jobs, of the virtual time from the creation of the last pod of a job until
        the last of its pods was bound; for a stuck job, until the end of the run.
    utilisation
        Share of all places over the makespan in which a job worked.
    held_in_vain
        Share of all places over the makespan that was bound for jobs that had not started.
    longest_idle_seconds
        The longest that a job without a place waited while there was room for all of it.
    decisions
        Decisions about pods, as the scheduler counts them.
    checks
        Number of checks of the groups; every check passed.
    wall_seconds
        Duration of the run in real time.
    digest
        First twelve digits of the SHA-256 of all bindings: pod and node, in the order in which the
        API server saw them.
    """

    mode: Mode
    done: int
    stuck: int
    makespan_seconds: float
    mean_wait_seconds: float
    utilisation: float
    held_in_vain: float
    longest_idle_seconds: float
    decisions: int
    checks: int
    wall_seconds: float
    digest: str


def as_lines(results: Sequence[ArrivalResult], *, nodes: int, jobs: int) -> list[str]:
    """Return results as a table for people."""
    lines = [
        f"{jobs} jobs on {nodes} nodes with room for {NODE_CPU} pods each, virtual time",
        "           done  stuck  makespan  mean wait  utilisation  held in vain  idle at most"
        "  decisions     wall  digest",
    ]
    lines += [
        f"  {each.mode:8} {each.done:4} {each.stuck:6} {each.makespan_seconds:8.0f}s "
        f"{each.mean_wait_seconds:9.1f}s {each.utilisation:12.1%} {each.held_in_vain:13.1%} "
        f"{each.longest_idle_seconds:12.0f}s {each.decisions:10} {each.wall_seconds:7.1f}s  "
        f"{each.digest}"
        for each in results
    ]
    return lines
