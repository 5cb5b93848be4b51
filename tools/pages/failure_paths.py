"""Every way an attempt can fail, as the reference page shows it.

The rows are data; ``scheduler/tests/service/test_failure_paths.py`` brings each about and compares,
so what the page says is what the program does. Rules: scheduling spec, cycle section 6.1.
"""

from __future__ import annotations

from typing import Literal

import msgspec

_HEADER = """# When an attempt fails

<!-- Written by `make docs` from tools/pages/failure_paths.py; a test compares it with the program.
-->

What becomes of a pod, by where its attempt failed; `X` stands for a plugin's name.

- **Taken back**: Unreserve of every Reserve plugin, last first, and the pod counts on its node no
  more.
- **Others**: pods that wait for room are woken for the room that is free again, before or after the
  failed pod itself went back to the queue.
- **Goes to**: a pod in *unschedulable* waits for an event that one of the plugins named under
  *waits for* registered, or for the leftover flush after five minutes, unless such an event came
  while it was tried; one in *backoff* is tried again after 1 to 10 seconds, whatever happens. Its
  nomination is cleared, unless PostFilter set or kept it.
- **Counted as**: the `result` of `scheduler_schedule_attempts_total`.
- **Reason** and **message**: of the condition `PodScheduled=False`; the `FailedScheduling` Event
  has the same text.

| Where it fails | Taken back | Others | Waits for | Goes to | Counted as | Reason | Message |
|---|---|---|---|---|---|---|---|
"""


class FailurePath(msgspec.Struct, frozen=True):
    """One way to fail.

    Parameters
    ----------
    key
        Name of the case, for the test.
    where
        What happened, for people.
    message
        Text of condition and Event; "" when none is written.
    reason
        Reason of the condition; "" when none is written.
    place
        Where the queue has the pod afterwards; "" for nowhere.
    rejectors
        Plugins whose events may wake it.
    taken_back
        Whether Reserve and the assumption are undone.
    others
        When other pods are told of the room.
    counted
        The result in metrics.
    """

    key: str
    where: str
    message: str
    reason: Literal["Unschedulable", "SchedulerError", ""] = "SchedulerError"
    place: Literal["unschedulable", "backoff", ""] = "backoff"
    rejectors: tuple[str, ...] = ()
    taken_back: bool = False
    others: Literal["", "before", "after"] = ""
    counted: Literal["unschedulable", "error"] = "error"


def _rejected(key: str, where: str, message: str, **more: object) -> FailurePath:
    path = FailurePath(
        key, where, message, "Unschedulable", "unschedulable", ("X",), counted="unschedulable"
    )
    return msgspec.structs.replace(path, **more)


def _failed(key: str, where: str, message: str, **more: object) -> FailurePath:
    return msgspec.structs.replace(FailurePath(key, where, message), **more)


_ONE = "0/1 nodes are available: 1 no."
_TIMEOUT = "0/1 nodes are available: 1 rejected due to timeout after waiting 30s at plugin X."

DECIDING = (
    _failed(
        "no nodes",
        "there is no node",
        "no nodes available to schedule pods",
        reason="Unschedulable",
        counted="unschedulable",
    ),
    _rejected("pre_filter rejects", "PreFilter rejects", "0/1 nodes are available: no."),
    _failed("pre_filter fails", "PreFilter fails", 'running PreFilter plugin "X": broken'),
    _rejected("filter rejects", "Filter rejects every node", _ONE),
    _failed("filter fails", "Filter fails", 'running "X" filter plugin: broken'),
    _rejected(
        "post_filter fails",
        "Filter rejects, then PostFilter fails",
        "0/1 nodes are available: 1 no. broken",
    ),
    _rejected("extender rejects", "an extender rejects every node", _ONE, rejectors=("Extender",)),
    _failed("extender fails", "an extender fails and may not be ignored", "broken"),
    _failed("pre_score fails", "PreScore fails", 'running PreScore plugin "X": broken'),
    _failed("score fails", "Score fails", 'running Score plugins: plugin "X" failed with: broken'),
)
"""In the scheduling cycle, before a node is chosen."""

TAKEN = (
    _failed(
        "assume fails",
        "the cache has the pod already",
        "pod uid-p(default/p) is in the cache, so can't be assumed",
    ),
    _rejected("reserve rejects", "Reserve rejects", _ONE, taken_back=True),
    _failed(
        "reserve fails", "Reserve fails", 'running Reserve plugin "X": broken', taken_back=True
    ),
    _rejected("permit rejects", "Permit rejects", _ONE, taken_back=True),
    _failed("permit fails", "Permit fails", 'running Permit plugin "X": broken', taken_back=True),
)
"""In the scheduling cycle, once a node is chosen."""

BINDING = (
    _failed(
        "pre_flight fails",
        "the look before PreBind fails",
        'running PreBindPreFlight "X": broken',
        taken_back=True,
        others="before",
    ),
    _rejected(
        "wait rejected",
        "rejected while it waits at Permit",
        _ONE,
        taken_back=True,
        others="after",
    ),
    _rejected(
        "wait timed out",
        "its time to wait at Permit is up",
        _TIMEOUT,
        taken_back=True,
        others="after",
    ),
    _failed(
        "wait preempted",
        "preempted while it waits at Permit",
        "waiting on permit for pod: preempted",
        taken_back=True,
        others="before",
    ),
    _rejected(
        "pre_bind rejects",
        "PreBind rejects",
        "no",
        place="backoff",
        rejectors=(),
        taken_back=True,
        others="after",
    ),
    _failed(
        "pre_bind fails",
        "PreBind fails",
        'running PreBind plugin "X": broken',
        taken_back=True,
        others="before",
    ),
    _failed(
        "pre_bind called off",
        "preempted in PreBind",
        "preempted by DefaultPreemption",
        taken_back=True,
        others="before",
    ),
    _rejected(
        "bind rejects",
        "Bind rejects",
        "no",
        place="backoff",
        rejectors=(),
        taken_back=True,
        others="after",
    ),
    _failed(
        "bind fails",
        "Bind fails",
        'running Bind plugin "X": broken',
        taken_back=True,
        others="before",
    ),
    _failed("nobody binds", "every Bind plugin skips", "", taken_back=True, others="before"),
    _failed(
        "extender does not bind",
        "an extender that binds fails and may not be ignored",
        "broken",
        taken_back=True,
        others="before",
    ),
)
"""In the binding cycle."""

GONE = (
    FailurePath(
        "deleted while tried",
        "the pod was deleted meanwhile",
        "",
        reason="",
        place="",
        taken_back=True,
        others="before",
    ),
    FailurePath(
        "another of that name",
        "the pod was deleted meanwhile, and there is another of that name",
        "",
        reason="",
        place="",
        taken_back=True,
        others="before",
    ),
    FailurePath(
        "bound by another",
        "somebody else bound the pod meanwhile",
        'running Bind plugin "X": broken',
        reason="",
        place="",
        taken_back=True,
    ),
)
"""When Bind fails and the API shows something else by now."""

PATHS = (*DECIDING, *TAKEN, *BINDING, *GONE)


def page() -> str:
    """Return the reference page."""
    return _HEADER + "".join(_row(path) for path in PATHS) + _FOOTER


def _row(path: FailurePath) -> str:
    cells = (
        path.where,
        "yes" if path.taken_back else "-",
        path.others or "-",
        ", ".join(path.rejectors) or "-",
        path.place or "nowhere",
        path.counted,
        path.reason or "-",
        f"`{path.message}`" if path.message else "-",
    )
    return f"| {' | '.join(cells)} |\n"


_FOOTER = """
A pod that is being deleted when its turn comes is not tried; it gets an Event that says so. A pod
whose profile is not known is not tried either. Where somebody else bound the pod, only the Event
is written: a condition would be false.
"""
