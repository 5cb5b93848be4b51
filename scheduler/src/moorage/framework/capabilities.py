"""Capabilities: what a plugin can do beyond the methods of its extension points.

A plugin declares them in one place, its attribute ``capabilities``: a `Capabilities`, or a method
that returns one. The profile reads the declaration once, when it is built, checks it against the
plugin's methods, and keeps it in tables. No other part of the scheduler looks for attributes of a
plugin. A capability never changes a decision. What does is a role (`moorage.framework.roles`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from enum import IntFlag
from functools import cache
from typing import Annotated, Any, Final, TypeAlias, get_type_hints

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Node
from moorage.base.errors import ConfigError
from moorage.framework.cycle_state import CycleState
from moorage.framework.insight.held_devices import HeldDevice
from moorage.framework.insight.relaxations import Ladder
from moorage.framework.plugin_metrics import PluginMetrics
from moorage.framework.signatures import parameter_faults
from moorage.framework.subjects import Subject
from moorage.framework.what_if import Room, RowCounts
from moorage.snapshot.importance import RankedPods
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import PartKind
from moorage.snapshot.shifted import RowSums
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

IntArray = NDArray[np.int64]
Skips: TypeAlias = bool | Callable[[Snapshot], bool]
"""Whether PreFilter skips: never, always, or as long as a condition of the cluster holds."""
RowJudge: TypeAlias = Callable[[CycleState, PodInfo, int, RowSums], tuple[int, int] | None]
"""Judges one row that holds more: the code and the id of the reasons; None if that takes arrays."""
Victims: TypeAlias = Sequence[tuple[int, PodInfo]]
"""The victims of a candidate, each with its row."""
RowScorer: TypeAlias = Callable[[int], int | None]
"""Returns the raw score of a row; None where that takes arrays."""


class Reads(IntFlag):
    """The part of the cluster that an answer about a row depends on, besides the pod's shape.

    NODE: that row's node object. PODS: the pods on that row (number, requests, ports, labels).
    SUMS: of these pods only their number and the sums of the resources that the pod requests.
    CLUSTER: anything else (other rows, other kinds, time). Such an answer is never reused.
    """

    NODE = 1
    PODS = 2
    CLUSTER = 4
    SUMS = 8


class Trait(msgspec.Struct, frozen=True):
    """The rules and the documentation of one capability.

    Parameters
    ----------
    meaning
        The promise of a plugin that declares it.
    saves
        The work that the scheduler saves, or "" where it saves none.
    methods
        Methods of extension points; the plugin must have one of them.
    beside
        Capabilities that must be declared as well.
    arguments
        Names of the arguments, where the capability is a function; empty where it is a value.
    from_outside
        Whether a plugin from outside may declare it.
    """

    meaning: str
    saves: str = ""
    methods: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    from_outside: bool = True


_FILTER: Final = ("filter", "filter_node")
_SCORE: Final = ("score", "score_node")


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """The capabilities of one plugin; the default of each field means that it is not declared.

    ``Capabilities()`` is a plugin that is asked again for every pod and every row.
    """

    filter_reads: Annotated[
        Reads | None,
        Trait(
            "What a Filter answer about a row depends on. Not declared, it is `Reads.CLUSTER`.",
            saves="Filter runs only for the rows that changed since the last replica. With "
            "`Reads.SUMS` in place of `Reads.PODS`, preemption and nominated pods are tried on "
            "many rows at once.",
            methods=_FILTER,
        ),
    ] = None
    score_reads: Annotated[
        Reads | None,
        Trait(
            "What a raw score of a row depends on. Not declared, it is `Reads.CLUSTER`.",
            saves="Score runs only for the rows that changed since the last replica.",
            methods=_SCORE,
        ),
    ] = None
    shape_parts: Annotated[
        tuple[PartKind[Any], ...] | None,
        Trait(
            "The parts of a pod that the plugin reads. Pods that agree in them get the same "
            "answers; `()` means that the pod does not matter.",
            saves="A decision takes 45 us instead of 179: PreFilter and PreScore run once for each "
            "shape of pods, Filter and Score only for rows that changed.",
            methods=(*_FILTER, *_SCORE),
        ),
    ] = None
    epoch: Annotated[
        Callable[[Snapshot], int] | None,
        Trait(
            "A number that changes when answers change for another reason than rows or pods. "
            "It is read in every attempt and must be quick.",
            saves="Answers that rest on a rarely changing total can be reused at all.",
            beside=("shape_parts",),
            arguments=("snapshot",),
        ),
    ] = None
    never_reused: Annotated[
        Callable[[PodInfo], bool] | None,
        Trait(
            "Whether no answer of any plugin about this pod may be reused for another pod.",
            saves="Answers about all other pods can be reused.",
            arguments=("pod",),
        ),
    ] = None
    rejects_by_shape: Annotated[
        bool,
        Trait(
            "PostFilter answers replicas of one priority and group alike, as long as it names no "
            "node and no row changes.",
            saves="PostFilter runs for the first of the replicas that fit nowhere, not for each.",
            methods=("post_filter",),
        ),
    ] = False
    skips_spec: Annotated[
        Callable[[PodInfo], Skips] | None,
        Trait(
            "Whether PreFilter skips every pod whose spec equals this one's, leaving nothing in "
            "the cycle state. A function of the snapshot: as long as it returns True. The function "
            "is called in every attempt and must be quick.",
            saves="PreFilter is not called for such pods. A decision takes 45 us instead of 52.",
            methods=("pre_filter",),
            arguments=("pod",),
            from_outside=False,
        ),
    ] = None
    filter_sees_pod: Annotated[
        Callable[[PodInfo], bool] | None,
        Trait(
            "Whether a pod that comes to a row or leaves it can change what Filter says of that "
            "row. PreFilter may ignore other pods in AddPod and RemovePod. The answer about a pod "
            "never changes.",
            saves="As `Reads.SUMS`, except on rows where such a pod counts.",
            methods=_FILTER,
            arguments=("other",),
            from_outside=False,
        ),
    ] = None
    filter_counts: Annotated[
        Callable[[CycleState, PodInfo, NodeView, RankedPods], RowCounts] | None,
        Trait(
            "The numbers of pods by which Filter judges a row, as far as the pods of the row "
            "count there, and what a pod of each kind adds. AddPod and RemovePod change nothing "
            "else of what Filter says of the row.",
            saves="As `Reads.SUMS`: preemption tries many rows at once.",
            methods=("filter",),
            arguments=("state", "pod", "view", "ranked"),
            from_outside=False,
        ),
    ] = None
    counts_nominated: Annotated[
        bool,
        Trait(
            "PreFilter counts the pods nominated first, on every node. Filter passes a row only if "
            "the row passes with these pods and without. The engine adds no nominated pod to the "
            "counts of such a plugin. PreFilter skips no pod that a nominated pod concerns.",
            methods=("pre_filter",),
            from_outside=False,
        ),
    ] = False
    nominated_need: Annotated[
        Callable[[PodInfo, Sequence[Victims]], Sequence[bool]] | None,
        Trait(
            "Whether nominated pods, all placed, would not fit without the victims of each "
            "candidate, and without the preemptor and the members of its group. Not declared, "
            "every victim that AddPod and RemovePod count is needed.",
            saves="A preemptor evicts pods that nominated pods count, and need not wait until "
            "these are placed.",
            methods=("pre_filter",),
            beside=("counts_nominated",),
            arguments=("pod", "candidates"),
            from_outside=False,
        ),
    ] = None
    filter_room: Annotated[
        Callable[[CycleState, PodInfo, NodeView], Room] | None,
        Trait(
            "The room that each row has left next to the pod. Filter fails a row exactly where "
            "the room is negative.",
            saves="Preemption puts pods back by subtraction, without asking Filter again. A "
            "decision takes 49 us instead of 54.",
            methods=("filter",),
            beside=("filter_reads",),
            arguments=("state", "pod", "view"),
            from_outside=False,
        ),
    ] = None
    filter_row: Annotated[
        RowJudge | None,
        Trait(
            "What Filter says of one row if it held more: the code and the id of the reasons, "
            "(0, 0) where the row passes. The code is never an error. None is always right: "
            "Filter itself is asked then, as for any answer but (0, 0) of a plugin from outside. "
            "The row holds more only where Filter reads sums.",
            saves="One changed row is judged without arrays. A decision takes 45 us instead of 53.",
            methods=("filter",),
            beside=("filter_reads",),
            arguments=("state", "pod", "row", "more"),
        ),
    ] = None
    row_scorer: Annotated[
        Callable[[CycleState, PodInfo], RowScorer | None] | None,
        Trait(
            "Returns a function that answers for one row what Score returns, about this pod. None "
            "in place of the function or of its answer is always right: Score itself is asked "
            "then. The function is used until a node or the list of columns changes.",
            saves="One changed row is scored without arrays. A decision takes 45 us instead of 92.",
            methods=("score",),
            beside=("score_reads",),
            arguments=("state", "pod"),
        ),
    ] = None
    pre_bind_parallel: Annotated[
        bool,
        Trait(
            "PreBind may run at the same time as that of its neighbours in the profile's order "
            "that declare the same. The first that fails cancels the others.",
            saves="A binding cycle waits for the slowest of them, not for their sum.",
            methods=("pre_bind",),
        ),
    ] = False
    rejects_about: Annotated[
        Subject | None,
        Trait(
            "What the plugin's rejections are about. Explanations then name amounts, taints, "
            "terms or ports instead of quoting the reason.",
            methods=(*_FILTER, "pre_filter"),
        ),
    ] = None
    relaxations: Annotated[
        Callable[[PodInfo], Sequence[Ladder]] | None,
        Trait(
            "Changes of the pod that ask less of the plugin. Explanations try them, and tell the "
            "smallest with which a node takes the pod.",
            methods=_FILTER,
            arguments=("pod",),
            from_outside=False,
        ),
    ] = None
    held_devices: Annotated[
        Callable[[PodInfo, Node], Sequence[HeldDevice]] | None,
        Trait(
            "The devices of its node that a bound pod holds, and the part of each. Answers about "
            "what fills a node show them.",
            arguments=("pod", "node"),
            from_outside=False,
        ),
    ] = None
    question: Annotated[
        Callable[[PodInfo], AbstractContextManager[None]] | None,
        Trait(
            "Opens a question about a pod. Until it is closed, the plugin answers without what it "
            "remembers of earlier attempts, and neither acts nor remembers anything.",
            arguments=("pod",),
            from_outside=False,
        ),
    ] = None
    own_metrics: Annotated[
        PluginMetrics | None,
        Trait(
            "Numbers for metrics that are the plugin's own, by the names of the metrics catalogue.",
            from_outside=False,
        ),
    ] = None

    def declared(self) -> Iterator[str]:
        """Yield the names of the capabilities that are declared, in the order of the fields."""
        for name in TRAITS:
            value = getattr(self, name)
            if value is not None and value is not False:
                yield name


@cache
def _traits() -> dict[str, Trait]:
    hints = get_type_hints(Capabilities, include_extras=True)
    return {name: hints[name].__metadata__[0] for name in Capabilities.__struct_fields__}


TRAITS: Final = _traits()
"""Every capability by its name, in the order of the fields."""

NONE: Final = Capabilities()
"""The capabilities of a plugin that declares none."""


def sees_no_pod(other: PodInfo) -> bool:
    """Say `filter_sees_pod` for a Filter that looks at no pod of the row."""
    del other
    return False


def capabilities_of(name: str, plugin: object) -> Capabilities:
    """Return the capabilities that a plugin declares, checked against its methods.

    Parameters
    ----------
    name
        The plugin's name in the configuration; for messages.
    plugin
        The plugin, made already.

    Raises
    ------
    ConfigError
        A capability is unknown, of the wrong type, in contradiction to the others or to the
        plugin's methods, or an attribute of the plugin that the declaration leaves out.
    """
    declaration: object = getattr(plugin, "capabilities", NONE)
    try:
        capabilities = declaration() if callable(declaration) else declaration
    except Exception as problem:
        text = str(problem) or type(problem).__name__
        raise ConfigError([f'plugin "{name}": its capabilities: {text}']) from problem
    if not isinstance(capabilities, Capabilities):
        raise ConfigError([f'plugin "{name}": {capabilities!r} is no Capabilities'])
    faults = [f'plugin "{name}": {fault}' for fault in _faults(capabilities, plugin)]
    if faults:
        raise ConfigError(faults)
    return capabilities


def reads_sums(reads: object) -> bool:
    """Whether answers depend on the pods of the row as sums, and on nothing but the row."""
    return reads in (Reads.SUMS, Reads.NODE | Reads.SUMS)


def is_reused(plugin: object, capabilities: Capabilities) -> bool:
    """Whether a plugin's answers may be reused for replicas.

    Answers may be reused when the plugin says which parts of a pod it reads, and when no answer of
    its Filter or Score depends on more than a row. The same then holds for its PreFilter and
    PreScore.
    """
    declared = [
        reads
        for reads, methods in (
            (capabilities.filter_reads, _FILTER),
            (capabilities.score_reads, _SCORE),
        )
        if any(hasattr(plugin, method) for method in methods)
    ]
    if capabilities.shape_parts is None or not declared:
        return False
    return all(reads is not None and Reads.CLUSTER not in reads for reads in declared)


def _faults(capabilities: Capabilities, plugin: object) -> Iterator[str]:
    declared = frozenset(capabilities.declared())
    for name, trait in TRAITS.items():
        if name not in declared:
            if hasattr(plugin, name):
                yield f"{name} is a capability: declare it in capabilities"
            continue
        fault = _wrong_type(name, trait, getattr(capabilities, name))
        if fault:
            yield f"capability {name}: {fault}"
        if trait.methods and not any(hasattr(plugin, method) for method in trait.methods):
            yield f"capability {name} needs the method {' or '.join(trait.methods)}"
        for other in trait.beside:
            if other not in declared:
                yield f"capability {name} needs {other} beside it"
    yield from _reuse_faults(capabilities, declared)


def _reuse_faults(capabilities: Capabilities, declared: frozenset[str]) -> Iterator[str]:
    for name in ("filter_reads", "score_reads"):
        reads = getattr(capabilities, name)
        if (
            isinstance(reads, Reads)
            and Reads.CLUSTER not in reads
            and capabilities.shape_parts is None
        ):
            yield f"capability {name} needs shape_parts beside it, () if the pod does not matter"
    if capabilities.shape_parts is not None and not (
        capabilities.filter_reads or capabilities.score_reads
    ):
        yield "capability shape_parts needs filter_reads or score_reads beside it"
    reads = capabilities.filter_reads
    if "filter_row" in declared and isinstance(reads, Reads) and Reads.CLUSTER in reads:
        yield "capability filter_row contradicts filter_reads, which names the cluster"
    if "filter_room" in declared and not reads_sums(reads):
        yield "capability filter_room needs filter_reads to name sums, not pods or the cluster"


def _wrong_type(name: str, trait: Trait, value: object) -> str:
    if trait.arguments:
        if not callable(value):
            return f"{value!r} is no function"
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        wanted = [inspect.Parameter(each, kind) for each in trait.arguments]
        shown = f"it is called as {name}({', '.join(trait.arguments)})"
        return "; ".join(f"{fault}: {shown}" for fault in parameter_faults(value, wanted))
    if name in ("filter_reads", "score_reads"):
        return "" if isinstance(value, Reads) else f"{value!r} is no Reads"
    if name == "rejects_about":
        return "" if isinstance(value, Subject) else f"{value!r} is no Subject"
    if name == "own_metrics":
        return "" if isinstance(value, PluginMetrics) else f"{value!r} is no PluginMetrics"
    if name == "shape_parts":
        parts = isinstance(value, tuple) and all(isinstance(each, PartKind) for each in value)
        return "" if parts else f"{value!r} is no tuple of parts of a pod"
    return "" if value is True else f"{value!r} is neither True nor False"
