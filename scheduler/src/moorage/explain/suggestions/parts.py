"""Suggestions that change one part of the pod: a toleration more, a rule or a port less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from moorage.api.codec import to_dict
from moorage.api.patch_operations import Operation, escaped, put, remove
from moorage.api.pod import Pod
from moorage.explain.answer import Suggestion
from moorage.explain.node_facts import condition_of, untolerated
from moorage.explain.pod_facts import affinity_terms, anti_affinity_terms
from moorage.explain.suggestions.ranked import PART, TOLERATION, RankedSuggestion
from moorage.explain.trying import Trying
from moorage.explain.words import expression_text, pod_term_text, taint_text, terms_text
from moorage.framework.subjects import Subject

_TAINTS_MOST: Final = 4
_SOFT: Final = "ScheduleAnyway"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class Change(NamedTuple):
    """A change of one part of a pod.

    Attributes
    ----------
    kind, text
        As a `Suggestion` has them.
    patch
        The operations.
    size
        As `RankedSuggestion` has it.
    """

    kind: str
    text: str
    patch: tuple[Operation, ...]
    size: float = PART


def tolerations(trying: Trying) -> Iterator[RankedSuggestion]:
    """Yield the taints that the pod could tolerate, one at a time."""
    for change in taint_changes(trying):
        yield from _tried(trying, change)


def taint_changes(trying: Trying) -> Iterator[Change]:
    """Yield a toleration of each taint that stands in the way, tried or not.

    Taints that tell the condition of a node, such as not ready, are left out: tolerating them gets
    the pod a node on which it does not run.
    """
    inquiry = trying.inquiry
    found = untolerated(inquiry, np.flatnonzero(inquiry.rejects_about(Subject.TAINTS)))
    present = [to_dict(each) for each in trying.pod.spec.tolerations]
    own = [taint for taint, _ in found if not condition_of(taint)]
    for taint in own[:_TAINTS_MOST]:
        added = {"key": taint.key, "operator": "Equal", "effect": taint.effect}
        if taint.value:
            added["value"] = taint.value
        patch = (put("/spec/tolerations", [*present, added]),)
        yield Change("toleration", f"tolerate the taint {taint_text(taint)}", patch, TOLERATION)


def relaxations(trying: Trying) -> Iterator[RankedSuggestion]:
    """Yield the rules of the pod that could be dropped, one at a time."""
    pod = trying.pod
    found = [each for change in _selector(pod) for each in _tried(trying, change)]
    if not found and len(pod.spec.node_selector or {}) > 1:
        patch = (remove("/spec/nodeSelector"),)
        found = list(_tried(trying, Change("selector", "drop its whole nodeSelector", patch)))
    yield from found
    for change in (*_node_affinity(pod), *_pod_terms(pod), *_spread(pod), *_ports(pod)):
        yield from _tried(trying, change)


def part_changes(trying: Trying) -> Iterator[Change]:
    """Yield the changes that drop a part of the pod which a rejecting plugin compares."""
    pod, inquiry = trying.pod, trying.inquiry
    for subject, changes in (
        (Subject.NODE_AFFINITY, (*_selector(pod), *_node_affinity(pod))),
        (Subject.POD_AFFINITY, tuple(_pod_terms(pod))),
        (Subject.SPREAD, tuple(_spread(pod))),
        (Subject.PORTS, tuple(_ports(pod))),
    ):
        if inquiry.rejects_about(subject).any():
            yield from changes


def _tried(trying: Trying, change: Change) -> Iterator[RankedSuggestion]:
    rows = trying.with_patch(change.patch)
    if len(rows):
        suggestion = Suggestion(
            kind=change.kind,
            text=change.text,
            nodes=len(rows),
            node=trying.first_name(rows),
            patch=change.patch,
        )
        yield RankedSuggestion(change.size, suggestion)


def _selector(pod: Pod) -> Iterator[Change]:
    selector = pod.spec.node_selector or {}
    for key, value in selector.items():
        path = f"/spec/nodeSelector/{escaped(key)}"
        yield Change("selector", f"drop {key}={value} from its nodeSelector", (remove(path),))


def _node_affinity(pod: Pod) -> Iterator[Change]:
    node = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = node.required_during_scheduling_ignored_during_execution if node else None
    if required is None:
        return
    path = f"/spec/affinity/nodeAffinity/{_REQUIRED}"
    terms = required.node_selector_terms
    if len(terms) == 1 and len(terms[0].match_expressions) > 1:
        for index, part in enumerate(terms[0].match_expressions):
            text = f"drop {expression_text(part)} from its node affinity"
            here = f"{path}/nodeSelectorTerms/0/matchExpressions/{index}"
            yield Change("affinity term", text, (remove(here),))
    text = f"drop its required node affinity {terms_text(required)}"
    yield Change("affinity term", text, (remove(path),))


def _pod_terms(pod: Pod) -> Iterator[Change]:
    for field, name, terms in (
        ("podAffinity", "pod affinity", affinity_terms(pod)),
        ("podAntiAffinity", "pod anti-affinity", anti_affinity_terms(pod)),
    ):
        for index, term in enumerate(terms):
            path = f"/spec/affinity/{field}/{_REQUIRED}/{index}"
            text = f"drop its required {name} ({pod_term_text(term)})"
            yield Change("affinity term", text, (remove(path),))


def _spread(pod: Pod) -> Iterator[Change]:
    """Yield each hard constraint as a soft one, or without it where there is such a soft one.

    ``minDomains`` is valid with DoNotSchedule only, and two constraints must differ in key or
    ``whenUnsatisfiable``.
    """
    constraints = pod.spec.topology_spread_constraints
    soft = {each.topology_key for each in constraints if each.when_unsatisfiable == _SOFT}
    for index, each in enumerate(constraints):
        if each.when_unsatisfiable == _SOFT:
            continue
        path = f"/spec/topologySpreadConstraints/{index}"
        over = f"its spread constraint over {each.topology_key}"
        if each.topology_key in soft:
            yield Change("constraint", f"drop {over} that is DoNotSchedule", (remove(path),))
            continue
        patch = [put(f"{path}/whenUnsatisfiable", _SOFT)]
        without = ""
        if each.min_domains is not None:
            patch.append(remove(f"{path}/minDomains"))
            without = f", without minDomains {each.min_domains}"
        yield Change("constraint", f"let {over} be {_SOFT}{without}", tuple(patch))


def _ports(pod: Pod) -> Iterator[Change]:
    if pod.spec.host_network:  # each port is a host port then, and cannot be taken off
        return
    for field, containers in (
        ("containers", pod.spec.containers),
        ("initContainers", pod.spec.init_containers),
    ):
        for at, container in enumerate(containers):
            if field == "initContainers" and not container.is_restartable_init:
                continue
            for index, port in enumerate(container.ports):
                if port.host_port:
                    path = f"/spec/{field}/{at}/ports/{index}/hostPort"
                    of = f"/{port.protocol}" if port.protocol not in {"", "TCP"} else ""
                    text = f"do without the host port {port.host_port}{of}"
                    yield Change("host port", text, (remove(path),))
