"""A simulation as data: acts of users and faults, each at a moment.

A script is a list of acts. Every act can be left out: an act on an object that is not there does
nothing. So a script that breaks something can be made shorter until each act is needed.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from moorage_lab.fault_sim.network_faults import WireFault


class Act(msgspec.Struct, frozen=True, kw_only=True, tag_field="act", tag=str.lower):
    """Something that happens.

    Parameters
    ----------
    at
        Moment, seconds since the start.
    """

    at: float


class Create(Act, frozen=True, kw_only=True):
    """A user creates an object."""

    object: dict[str, Any]


class Delete(Act, frozen=True, kw_only=True):
    """A user deletes an object.

    Parameters
    ----------
    kind, name, namespace
        The object.
    api_version
        Tells apart kinds of one name.
    process, steps
        A scheduler, and the steps that it still runs first: so the object is deleted at any await
        of this scheduler. "" for none.
    """

    kind: str
    name: str
    namespace: str = "default"
    api_version: str | None = None
    process: str = ""
    steps: int = 0


class Patch(Act, frozen=True, kw_only=True):
    """A user changes an object by a JSON merge patch; `subresource` is "" for the object itself."""

    kind: str
    name: str
    changes: dict[str, Any]
    namespace: str = "default"
    subresource: str = ""
    api_version: str | None = None


class Bind(Act, frozen=True, kw_only=True):
    """Another scheduler binds a pod, as it stands, to a node."""

    pod: str
    node: str
    namespace: str = "default"


class Join(Act, frozen=True, kw_only=True):
    """A node that an agent plays joins the cluster."""

    node: dict[str, Any]


class Disturb(Act, frozen=True, kw_only=True):
    """A fault strikes the connection of one program for a while.

    Parameters
    ----------
    process
        Name of the program: ``scheduler-0``, ``controllers``, ``nodes``.
    fault, rate
        Kind of the fault, and the share of calls or lines that it strikes.
    seconds
        How long it is at work.
    """

    process: str
    fault: WireFault
    rate: float
    seconds: float


class Stop(Act, frozen=True, kw_only=True):
    """A program stops as by SIGSTOP, and goes on after a while.

    Parameters
    ----------
    process
        A scheduler, or all ``nodes`` agents.
    seconds
        How long it is stopped.
    steps
        Steps that a scheduler still runs after the moment: it is stopped at any await.
    asleep
        Whether the computer of a scheduler sleeps: the monotonic clock of the scheduler and its
        timers stand still as well, and its wall clock goes on.
    """

    process: str
    seconds: float
    steps: int = 0
    asleep: bool = False


class Kill(Act, frozen=True, kw_only=True):
    """A program is killed as by SIGKILL, or asked to end; another is started after a while.

    Parameters
    ----------
    process
        A scheduler, or the ``nodes`` agents, which are killed in either case.
    signal
        How it ends.
    seconds
        Time until another is started.
    steps
        Steps that a scheduler still runs after the moment: it is killed at any await.
    """

    process: str
    signal: Literal["KILL", "TERM"]
    seconds: float
    steps: int = 0


class Depose(Act, frozen=True, kw_only=True):
    """A scheduler loses its lease: its time is over at once, and the Lease names another holder.

    The wall clock of the scheduler jumps an hour ahead, so it knows that its time is over. The
    other holder never renews.

    Parameters
    ----------
    process
        A scheduler; nothing happens where it does not lead.
    steps
        Steps that it still runs after the moment: it loses the lease at any await.
    """

    process: str
    steps: int = 0


class Misbehave(Act, frozen=True, kw_only=True):
    """The plugins and extenders that misbehave do so more or less often for a while.

    Parameters
    ----------
    rate
        Their usual shares are multiplied by this number; 0 for none.
    seconds
        How long it stays so.
    """

    rate: float
    seconds: float


class Reload(Act, frozen=True, kw_only=True):
    """A scheduler is told to read its configuration again, which is another one by now.

    Parameters
    ----------
    setup
        The configuration, a key of `moorage_lab.fault_sim.setups.SETUPS`.
    """

    process: str
    setup: str


class Drain(Act, frozen=True, kw_only=True):
    """An administrator cordons a node and evicts its pods, as their budgets allow it.

    Parameters
    ----------
    node
        Name of the node.
    seconds
        How long refused evictions are tried again.
    """

    node: str
    seconds: float


class Autoscale(Act, frozen=True, kw_only=True):
    """A cluster autoscaler runs for a while: nodes come while pods wait, and leave when empty."""

    seconds: float


class Look(Act, frozen=True, kw_only=True):
    """The cluster has been quiet for a while: no pod may wait that could be placed."""


class Jump(Act, frozen=True, kw_only=True):
    """The wall clock of a scheduler jumps."""

    process: str
    seconds: float


class Outage(Act, frozen=True, kw_only=True):
    """The API server accepts no connection for a while, and may have forgotten its history.

    Parameters
    ----------
    seconds
        How long it is away.
    forgets
        Whether watches can no longer continue where they were.
    """

    seconds: float
    forgets: bool


class Crash(Act, frozen=True, kw_only=True):
    """The API server dies, and another reads what is on the disk; in memory nothing happens.

    Parameters
    ----------
    how
        ``kill`` dies before a call to the disk, ``torn`` and ``broken`` by an error of the disk,
        with half of a write in place or nothing of it.
    power
        Whether what was not synced may be lost.
    calls
        Calls to the disk that still succeed; the next one does not.
    seconds
        Time until another server is started.
    """

    how: Literal["kill", "torn", "broken"]
    power: bool
    calls: int
    seconds: float


class FullDisk(Act, frozen=True, kw_only=True):
    """The disk of the API server has no room for a while; some room may be left at first.

    Parameters
    ----------
    room_bytes
        Room that is left.
    seconds
        How long it stays so.
    """

    room_bytes: int
    seconds: float


FaultAct = Disturb | Stop | Kill | Depose | Misbehave | Jump | Outage | Reload | Crash | FullDisk
"""The acts that strike a program."""

AnyAct = Create | Delete | Patch | Bind | Join | Look | Drain | Autoscale | FaultAct


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole run, as data.

    Parameters
    ----------
    seed
        Decides everything that the acts leave open: delays, draws, identifiers.
    replicas
        Number of schedulers.
    nodes
        Nodes at the start.
    acts
        What happens, in the order of time.
    rest_seconds
        Time without acts and faults after the last act, before the cluster is looked at as a whole.
    setup
        Configuration of the schedulers, a key of `moorage_lab.fault_sim.setups.SETUPS`.
    on_disk
        Whether the API server keeps its objects on a disk.
    """

    seed: int
    replicas: int = 1
    nodes: list[dict[str, Any]] = []
    acts: list[AnyAct] = []
    rest_seconds: float = 150.0
    setup: str = "default"
    on_disk: bool = False
