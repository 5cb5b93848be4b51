"""Topology spread constraints, compiled: what PodTopologySpread reads of a pod.

First stop of the plugin: the constraints a pod brings become `Constraint`s with count keys, sorted
into hard and soft. Constraints a pod does not bring come from `defaults`.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/podtopologyspread/common.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from moorage.api.meta import LabelSelector
from moorage.api.pod import Pod, TopologySpreadConstraint
from moorage.api.requirement import Operator, Requirement
from moorage.api.selectors import Selector, compile_label_selector, make_selector
from moorage.snapshot.pod_columns import CountKey
from moorage.snapshot.shape import PartKind

HARD: Final = "DoNotSchedule"
SOFT: Final = "ScheduleAnyway"
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=SOFT, max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable=SOFT, max_skew=5),
)
"""kube-scheduler's own default constraints (defaultingType System)."""

_HONOR: Final = "Honor"


class Constraint(msgspec.Struct, frozen=True):
    """One compiled constraint.

    Parameters
    ----------
    key
        Topology key: a node's domain is its value of this label.
    max_skew
        By how many pods a domain may be ahead of the smallest.
    count
        The pods counted: the pod's namespace, live ones only.
    matches_self
        Whether the selector matches the pod itself.
    min_domains
        With fewer domains than this the smallest counts as empty.
    honor_affinity, honor_taints
        Whether nodes the pod's node affinity or the taints rule out are left out of the counts.
    """

    key: str
    max_skew: int
    count: CountKey
    matches_self: bool
    min_domains: int
    honor_affinity: bool
    honor_taints: bool

    @property
    def selector(self) -> Selector:
        """Which pods the constraint is about."""
        return self.count.selector

    @property
    def counts_none(self) -> bool:
        """Whether no existing pod is ever counted.

        Upstream also counts none for the empty selector, which matches every pod.
        """
        return self.selector.nothing or self.selector.is_empty


class Constraints(msgspec.Struct, frozen=True):
    """All constraints of a pod, in spec order.

    Parameters
    ----------
    hard, soft
        Of Filter, and of Score.
    explicit
        Whether the pod brings them itself; defaults are not even looked at then.
    hard_error, soft_error
        Why constraints of that kind cannot be understood; None when they can.
    """

    hard: tuple[Constraint, ...] = ()
    soft: tuple[Constraint, ...] = ()
    explicit: bool = False
    hard_error: str | None = None
    soft_error: str | None = None


NO_CONSTRAINTS: Final = Constraints()


def compile_constraint(
    written: TopologySpreadConstraint,
    selector: Selector,
    namespace: str,
    labels: Mapping[str, str],
) -> Constraint:
    """Return a constraint with the selector it ends up with.

    Parameters
    ----------
    written
        The constraint; its own selector and ``matchLabelKeys`` are not looked at.
    selector
        Which pods it is about.
    namespace, labels
        Of the pod the constraint is for.
    """
    taints, affinity = written.node_taints_policy, written.node_affinity_policy
    return Constraint(
        key=written.topology_key,
        max_skew=written.max_skew,
        count=CountKey(selector, frozenset({namespace}), live_only=True),
        matches_self=selector.matches(labels),
        min_domains=1 if written.min_domains is None else written.min_domains,
        honor_affinity=affinity is None or affinity == _HONOR,
        honor_taints=taints == _HONOR,
    )


def own_constraints(pod: Pod) -> Constraints:
    """Compile the constraints a pod brings itself."""
    written = pod.spec.topology_spread_constraints
    if not written:
        return NO_CONSTRAINTS
    hard, hard_error = _of_kind(HARD, pod)
    soft, soft_error = _of_kind(SOFT, pod)
    return Constraints(hard, soft, True, hard_error, soft_error)


def _of_kind(kind: str, pod: Pod) -> tuple[tuple[Constraint, ...], str | None]:
    labels = pod.metadata.labels
    found = []
    for written in pod.spec.topology_spread_constraints:
        if written.when_unsatisfiable != kind:
            continue
        try:
            selector = compile_label_selector(written.label_selector)
        except ValueError as problem:
            return (), str(problem)
        selector = _with_labels_of_pod(selector, written.match_label_keys, labels)
        found.append(compile_constraint(written, selector, pod.metadata.namespace, labels))
    return tuple(found), None


def _with_labels_of_pod(
    selector: Selector, keys: Iterable[str], labels: Mapping[str, str]
) -> Selector:
    """Narrow a selector to pods that agree with the pod in these labels, where it has them."""
    if selector.nothing:
        return selector
    equal = [Requirement(key, Operator.IN, (labels[key],)) for key in keys if key in labels]
    return make_selector([*selector.requirements, *equal]) if equal else selector


def _fields(pod: Pod) -> object:
    """Return what `own_constraints` depends on: of the labels only the ones asked about.

    So the pods of a StatefulSet, each with a label of its own, still share one part.
    """
    written = pod.spec.topology_spread_constraints
    if not written:
        return None
    labels = pod.metadata.labels
    asked = {key for constraint in written for key in _keys_asked(constraint)}
    known = {key: labels[key] for key in sorted(asked & labels.keys())}
    return written, pod.metadata.namespace, known


def _keys_asked(constraint: TopologySpreadConstraint) -> Iterator[str]:
    yield from constraint.match_label_keys
    selector: LabelSelector | None = constraint.label_selector
    if selector is not None:
        yield from selector.match_labels
        for expression in selector.match_expressions:
            yield expression.key


SPREAD: Final[PartKind[Constraints]] = PartKind(
    "topology spread", _fields, own_constraints, beside_volumes=True
)
"""`own_constraints` as a part of a pod's shape."""
