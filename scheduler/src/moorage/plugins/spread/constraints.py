"""Compiled topology spread constraints of a pod.

The first step of PodTopologySpread: the constraints of a pod's spec become hard and soft
`Constraint`s with count keys. `defaults` adds constraints to pods without their own.

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
        The greatest allowed difference in pods between a domain and the smallest domain.
    count
        Key of the counted pods: pods of the pod's namespace that are not terminating.
    matches_self
        Whether the selector matches the pod itself.
    min_domains
        With fewer domains than this number, the smallest count is 0.
    honor_affinity, honor_taints
        Whether nodes that fail the pod's node affinity, or have untolerated taints, do not count.
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
        """The selector of the counted pods."""
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
        The constraints for Filter, and for Score.
    explicit
        Whether the pod's spec has constraints; default constraints do not apply then.
    hard_error, soft_error
        Why the constraints of this kind are invalid; None when they are valid.
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
    """Compile a constraint with a given selector.

    Parameters
    ----------
    written
        The constraint; its own selector and ``matchLabelKeys`` are ignored.
    selector
        Selector of the counted pods.
    namespace, labels
        Namespace and labels of the pod with the constraint.
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
    """Compile the constraints of a pod's spec."""
    written = pod.spec.topology_spread_constraints
    if not written:
        return NO_CONSTRAINTS
    hard, hard_error = _of_kind(HARD, pod)
    soft, soft_error = _of_kind(SOFT, pod)
    return Constraints(hard, soft, True, hard_error, soft_error)


def _of_kind(kind: str, pod: Pod) -> tuple[tuple[Constraint, ...], str | None]:
    labels = pod.metadata.labels
    compiled = []
    for written in pod.spec.topology_spread_constraints:
        if written.when_unsatisfiable != kind:
            continue
        try:
            selector = compile_label_selector(written.label_selector)
        except ValueError as problem:
            return (), str(problem)
        selector = _with_labels_of_pod(selector, written.match_label_keys, labels)
        compiled.append(compile_constraint(written, selector, pod.metadata.namespace, labels))
    return tuple(compiled), None


def _with_labels_of_pod(
    selector: Selector, keys: Iterable[str], labels: Mapping[str, str]
) -> Selector:
    """Add to a selector the pod's values of these labels, for labels that the pod has."""
    if selector.nothing:
        return selector
    equal = [Requirement(key, Operator.IN, (labels[key],)) for key in keys if key in labels]
    return make_selector([*selector.requirements, *equal]) if equal else selector


def _fields(pod: Pod) -> object:
    """Return the inputs of `own_constraints`: of the labels only the labels it reads.

    So the pods of a StatefulSet, each with a unique label, still share one part.
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
