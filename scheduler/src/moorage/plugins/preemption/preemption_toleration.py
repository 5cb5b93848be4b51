"""PreemptionToleration: preemption that spares pods whose PriorityClass tolerates it.

A profile enables this plugin instead of DefaultPreemption at ``postFilter``. The plugin differs in
one exemption, which a PriorityClass declares by annotations:

- ``preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority``: pods of this priority
  and higher may evict them at once; the class's own value + 1 if absent;
- ``preemption-toleration.scheduling.x-k8s.io/toleration-seconds``: other pods only so many seconds
  after they were scheduled, never if negative; 0 if absent.

Annotations with the older domain ``scheduling.sigs.k8s.io`` count as well. An invalid number is
reported, and its class tolerates nothing. The plugin is not part of the default profile.

Rules mirrored: scheduler-plugins ``pkg/preemptiontoleration`` of 2026-08.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.api.policy import PriorityClass
from moorage.base.clock import NS_PER_SECOND, parse_rfc3339
from moorage.base.errors import ConfigError
from moorage.config.plugin_args import validate_default_preemption_args
from moorage.config.plugin_args_optional import PreemptionTolerationArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration, PostFilterResult
from moorage.framework.roles import Role
from moorage.framework.status import Status, error, unresolvable
from moorage.framework.what_if import WHAT_IF
from moorage.plugins.preemption.evaluator import (
    POLICY_NEVER,
    TERMINATING,
    Evaluator,
    enough_candidates,
    gate_looked_at,
)
from moorage.plugins.preemption.victims import LowerPriority
from moorage.snapshot.listers import Lister
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

_log = logging.getLogger(__name__)

_DOMAINS: Final = (
    "preemption-toleration.scheduling.x-k8s.io",
    "preemption-toleration.scheduling.sigs.k8s.io",
)


class PreemptionToleration:
    """PreEnqueue and PostFilter plugin.

    Raises
    ------
    ConfigError
        The arguments would try no node at all, or a number is out of bounds.
    """

    name = "PreemptionToleration"
    roles = Role.PREEMPTS

    def __init__(self, args: PreemptionTolerationArgs, handle: Handle) -> None:
        faults = validate_default_preemption_args(args, "")
        if faults:
            raise ConfigError(faults, source=self.name)
        self._args = args
        self._snapshot = handle.snapshot
        self._clock = handle.clock
        self._draws = handle.streams.stream("preemption/offset")
        self._evaluator = Evaluator(handle)
        self._evictions = handle.evictions
        self._classes = _Classes(handle.snapshot.listers.priority_classes)

    def pre_enqueue(self, pod: Pod) -> Status:
        """Reject the pod while victims of its preemption are still to be evicted."""
        return self._evaluator.gate(pod)

    def post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: Mapping[str, Status]
    ) -> tuple[PostFilterResult | None, Status]:
        """Find the node where evicting pods without exemption costs least, or return why none.

        Raises
        ------
        StateMissingError
            No engine provides the failed search of this attempt.
        """
        del node_to_status
        narrowed = self._evaluator.narrowed(state)
        if narrowed is not None:
            return narrowed
        if pod.pod.spec.preemption_policy == "Never":
            return self._evaluator.refused(POLICY_NEVER)
        row = self._evaluator.nominated_row(state.read(WHAT_IF), pod)
        if row is not None and self._makes_room(self._snapshot.pods(row), pod):
            return self._evaluator.refused(TERMINATING)
        rules = _NotExempt(
            self._snapshot,
            pod,
            classes=self._classes.current(),
            now_ns=self._clock.now_ns(),
        )
        return self._evaluator.preempt(state, pod, self._where, rules)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register pod deletions for PreEnqueue only; other plugins decide which pods to queue."""
        return (gate_looked_at(),)

    def _makes_room(self, pods: Iterable[PodInfo], preemptor: PodInfo) -> bool:
        """Whether a pod of lower priority is terminating, for whatever reason, or will be."""
        return any(
            each.priority < preemptor.priority
            and (each.pod.metadata.deletion_timestamp or self._evictions.is_leaving(each.pod))
            for each in pods
        )

    def _where(self, potential: int) -> tuple[int, int]:
        """Return a random first row, and the number of candidates that are enough."""
        args = self._args
        enough = enough_candidates(
            potential,
            percentage=args.min_candidate_nodes_percentage,
            absolute=args.min_candidate_nodes_absolute,
        )
        return self._draws.randrange(potential), enough


class Toleration(msgspec.Struct, frozen=True):
    """The exemption that a PriorityClass declares.

    Parameters
    ----------
    priority
        The lowest priority of a preemptor that may evict pods of the class at once.
    seconds
        Seconds after scheduling during which other preemptors may not; below 0: never.
    """

    priority: int
    seconds: int

    def exempts(self, pod: PodInfo, preemptor: PodInfo, now_ns: int) -> bool:
        """Whether a pod of the class may not be evicted for a preemptor, at a wall-clock time."""
        if preemptor.priority >= self.priority:
            return False
        if self.seconds < 0:
            return True
        scheduled_ns = _scheduled_ns(pod)
        return scheduled_ns is None or scheduled_ns + self.seconds * NS_PER_SECOND > now_ns


def _open(toleration: Toleration | None, preemptor: PodInfo) -> bool:
    """Whether a preemptor may evict all pods of a class at any time."""
    return toleration is None or preemptor.priority >= toleration.priority


class _NotExempt(LowerPriority):
    """`VictimRules`: pods of lower priority, except pods whose class exempts them."""

    def __init__(
        self,
        snapshot: Snapshot,
        pod: PodInfo,
        *,
        classes: Mapping[str, Toleration | None],
        now_ns: int,
    ) -> None:
        super().__init__(pod)
        self._snapshot = snapshot
        self._pod = pod
        self._classes = classes
        self._now_ns = now_ns
        # Classes without an exemption: most classes. Their pods follow the usual rules.
        self._plain = {"", *(name for name, found in classes.items() if _open(found, pod))}

    def by_priority(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return bool, (rows,): rows where no pod has a class with an exemption."""
        plain, pods = self._plain, self._snapshot.table.pods_by_row
        return np.array(
            [
                all(each.pod.spec.priority_class_name in plain for each in pods[row].values())
                for row in rows.tolist()
            ],
            np.bool_,
        )

    def allows(self, pod: PodInfo) -> bool | Status:
        """Whether a pod has a lower priority and no exemption; an error for an unknown class."""
        if not super().allows(pod):
            return False
        class_name = pod.pod.spec.priority_class_name
        if not class_name:
            return True
        if class_name not in self._classes:
            return error(f'priorityclass.scheduling.k8s.io "{class_name}" not found')
        found = self._classes[class_name]
        return found is None or not found.exempts(pod, self._pod, self._now_ns)

    def nobody(self, node_name: str) -> Status:
        """Return the status of a node without evictable pods."""
        return unresolvable(
            f"No victims found on node {node_name} for preemptor pod {self._pod.name}"
        )


class _Classes:
    """The exemptions of all PriorityClasses, read again after each change."""

    def __init__(self, lister: Lister[PriorityClass]) -> None:
        self._lister = lister
        self._generation = -1
        self._tolerations: Mapping[str, Toleration | None] = {}

    def current(self) -> Mapping[str, Toleration | None]:
        """Return the exemptions by class; None for an invalid one."""
        if self._generation != self._lister.generation:
            self._generation = self._lister.generation
            self._tolerations = {each.name: _toleration(each) for each in self._lister.all()}
        return self._tolerations


def _toleration(priority_class: PriorityClass) -> Toleration | None:
    try:
        priority = _number(priority_class, "minimum-preemptable-priority", bits=32)
        seconds = _number(priority_class, "toleration-seconds", bits=64)
    except ValueError as problem:
        _log.error("PriorityClass %s tolerates no preemption: %s", priority_class.name, problem)
        return None
    return Toleration(priority_class.value + 1 if priority is None else priority, seconds or 0)


def _number(priority_class: PriorityClass, key: str, *, bits: int) -> int | None:
    for domain in _DOMAINS:
        text = priority_class.metadata.annotations.get(f"{domain}/{key}")
        if text is None:
            continue
        digits = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
        if not (digits.isascii() and digits.isdecimal()):
            raise ValueError(f"annotation {domain}/{key}: {text!r} is no whole number")
        number = int(text)
        if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
            raise ValueError(f"annotation {domain}/{key}: {text} has more than {bits} bits")
        return number
    return None


def _scheduled_ns(pod: PodInfo) -> int | None:
    """Return the time when a pod was scheduled, nanoseconds; None without that condition."""
    for condition in pod.pod.status.conditions:
        if condition.type == "PodScheduled":
            if condition.status != "True" or not condition.last_transition_time:
                return None
            try:
                return parse_rfc3339(condition.last_transition_time)
            except ValueError:
                return None
    return None
