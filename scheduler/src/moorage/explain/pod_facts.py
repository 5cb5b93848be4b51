"""Rejections that are about other pods, in words: host ports, spreading, affinity.

The plugin says which part of the pod is at fault. Pods are looked up only to name them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec
import numpy as np

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Affinity, Container, Pod, PodAffinityTerm, TopologySpreadConstraint
from moorage.engine.inquiry import BoolArray
from moorage.explain.parts import parts_at_fault, with_spec
from moorage.explain.rejections import Rejection, nominated_at
from moorage.explain.staying import owner_words, stays
from moorage.explain.words import joined, listed, on_some, pod_selector_text, pod_term_text
from moorage.snapshot.pod_affinity import POD_AFFINITY, AffinityTerm, compile_term
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import LABELS, PORTS, HostPort, host_ports

_PODS_MOST: Final = 50_000
"""Pods that are looked at for partners of an affinity, at most; a guess."""
_IN_THE_WAY_MOST: Final = 5_000
"""Pods that are looked at to name those in the way, at most; a guess."""
_ANY_ADDRESS: Final = "0.0.0.0"
_AFFINITY: Final = "pod affinity rules"
_ANTI_AFFINITY: Final = "pod anti-affinity rules"
_EXISTING: Final = "existing pods anti-affinity"
_OF_NOMINATED: Final = "nominated pods' topology spread"

Placed = tuple[int, PodInfo]
"""A pod and its row."""


# --- host ports -----------------------------------------------------------------------------------


def ports_fact(rejection: Rejection) -> str:
    """Return the host ports that other pods have, with these pods."""
    wanted = list(dict.fromkeys(host_ports(rejection.pod)))
    found = parts_at_fault(rejection, wanted, lambda ports: _with_ports(rejection.pod, ports))
    return joined([_port(rejection, port, failed_n) for port, failed_n in found])


def _with_ports(pod: Pod, ports: Sequence[HostPort]) -> Pod:
    """Return a pod that takes some host ports only."""

    def with_ports_only(container: Container) -> Container:
        own = [
            each
            for each in container.ports
            if (each.host_ip or _ANY_ADDRESS, each.protocol or "TCP", each.host_port) in ports
        ]
        return msgspec.structs.replace(container, ports=own)

    return with_spec(
        pod,
        containers=[with_ports_only(each) for each in pod.spec.containers],
        init_containers=[with_ports_only(each) for each in pod.spec.init_containers],
    )


def _port(rejection: Rejection, port: HostPort, failed_n: BoolArray) -> str:
    address, protocol, number = port
    at = "" if address == _ANY_ADDRESS else f" of {address}"
    text = on_some(
        f"the host port {number}/{protocol}{at}", int(failed_n.sum()), len(rejection.rows)
    )
    some = islice(_pods_on(rejection, failed_n), _IN_THE_WAY_MOST)
    having = [each for each in some if _takes(each[1], port)]
    have = "has" if len(having) == 1 else "have"
    return f"{text}, which {_first_and_count(rejection, having)} {have}" if having else text


def _takes(pod: PodInfo, port: HostPort) -> bool:
    address, protocol, number = port
    return any(
        (protocol, number) == (other_protocol, other_number)
        and (address == other or _ANY_ADDRESS in (address, other))
        for other, other_protocol, other_number in pod.part(PORTS).value
    )


# --- spreading ------------------------------------------------------------------------------------


def spread_fact(rejection: Rejection) -> str:
    """Return the hard spread constraints that are violated, of the pod or of nominated pods."""
    without = with_spec(rejection.pod, topology_spread_constraints=[])
    nominated_n = rejection.failed(without, because=_OF_NOMINATED)
    of_nominated = _of_nominated(rejection, nominated_n) if nominated_n.any() else ""
    return joined([text for text in (_own_spread(rejection), of_nominated) if text])


def _hard(pod: Pod) -> list[TopologySpreadConstraint]:
    constraints = pod.spec.topology_spread_constraints
    return [each for each in constraints if each.when_unsatisfiable != "ScheduleAnyway"]


def _of_nominated(rejection: Rejection, failed_n: BoolArray) -> str:
    """Return the nominated pods whose spread constraints keep the pod from some rows."""
    own, rows = rejection.inquiry.attempt.pod, np.arange(rejection.inquiry.snapshot.num_nodes)
    nominated = [
        (row, other)
        for row, other in nominated_at(rejection.inquiry, rows)
        if other.priority > own.priority and other.namespace == own.namespace and _hard(other.pod)
    ]
    if not nominated:
        return ""
    keys = dict.fromkeys(each.topology_key for _, pod in nominated for each in _hard(pod.pod))
    pods = _first_and_count(rejection, nominated)
    fact = f"the topology spread over {listed(list(keys))} of nominated {pods}"
    return on_some(fact, int(failed_n.sum()), len(rejection.rows))


def _own_spread(rejection: Rejection) -> str:
    pod = rejection.pod
    hard = _hard(pod)
    if not hard:  # the constraints of the profile
        return ""
    parts = parts_at_fault(
        rejection,
        hard,
        lambda kept: with_spec(pod, topology_spread_constraints=list(kept)),
    )
    plural = "s" if len(parts) > 1 else ""
    texts = [_constraint(rejection, each, failed_n) for each, failed_n in parts]
    return f"its topology spread constraint{plural} over {joined(texts)}" if texts else ""


def _constraint(
    rejection: Rejection, constraint: TopologySpreadConstraint, failed_n: BoolArray
) -> str:
    domains = f", minDomains {constraint.min_domains}" if constraint.min_domains else ""
    text = f"{constraint.topology_key} (maxSkew {constraint.max_skew}{domains})"
    text = on_some(text, int(failed_n.sum()), len(rejection.rows))
    return f"{text}{_without_label(rejection, constraint.topology_key, failed_n)}"


def _without_label(rejection: Rejection, key: str, failed_n: BoolArray) -> str:
    """Return that some rows have no such label; "" where one of them has it."""
    snapshot = rejection.inquiry.snapshot
    if any(key in each.labels for each in _nodes(rejection, failed_n)):
        return ""
    if any(key in each.metadata.labels for each in snapshot.table.nodes):
        return ", whose label these nodes lack"
    return ", a label that no node has"


# --- affinity -------------------------------------------------------------------------------------


def pod_affinity_fact(rejection: Rejection) -> str:
    """Return the terms that are violated, of the pod or of other pods."""
    pod = rejection.pod
    parts = []
    near = parts_at_fault(
        rejection,
        affinity_terms(pod),
        lambda terms: with_spec(pod, affinity=_requiring(pod, terms, ())),
        because=_AFFINITY,
    )
    together = _not_together(rejection, [term for term, _ in near])
    parts += [together] if together else [_near(rejection, *each) for each in near]
    existing_n = rejection.failed(with_spec(pod, affinity=None), because=_EXISTING)
    if existing_n.any():
        parts.append(_existing(rejection, existing_n))
    away = parts_at_fault(
        rejection,
        anti_affinity_terms(pod),
        lambda terms: with_spec(pod, affinity=_requiring(pod, (), terms)),
        because=_ANTI_AFFINITY,
    )
    parts += [_away(rejection, term, failed_n) for term, failed_n in away]
    return joined(parts)


def affinity_terms(pod: Pod) -> list[PodAffinityTerm]:
    """Return the required pod affinity terms of a pod."""
    found = pod.spec.affinity.pod_affinity if pod.spec.affinity else None
    return [] if found is None else found.required_during_scheduling_ignored_during_execution


def anti_affinity_terms(pod: Pod) -> list[PodAffinityTerm]:
    """Return the required pod anti-affinity terms of a pod."""
    found = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
    return [] if found is None else found.required_during_scheduling_ignored_during_execution


def _requiring(
    pod: Pod, near: Sequence[PodAffinityTerm], away: Sequence[PodAffinityTerm]
) -> Affinity | None:
    """Return a pod's affinity with these required terms about pods alone."""
    affinity = pod.spec.affinity
    if affinity is None:
        return None
    required = "required_during_scheduling_ignored_during_execution"
    terms_by_field = {"pod_affinity": near, "pod_anti_affinity": away}
    return msgspec.structs.replace(
        affinity,
        **{
            field: None if own is None else msgspec.structs.replace(own, **{required: list(terms)})
            for field, terms in terms_by_field.items()
            for own in (getattr(affinity, field),)
        },
    )


def _near(rejection: Rejection, term: PodAffinityTerm, failed_n: BoolArray) -> str:
    text = f"its required pod affinity ({pod_term_text(term)})"
    text = on_some(text, int(failed_n.sum()), len(rejection.rows))
    lacking = _without_label(rejection, term.topology_key, failed_n)
    return f"{text}{lacking or _partners(rejection, term)}"


def _not_together(rejection: Rejection, terms: Sequence[PodAffinityTerm]) -> str:
    """Return that pods match each of several terms and no pod matches all; "" if that is not so.

    A pod counts for an affinity only if it matches all of the terms (kubernetes v1.36
    ``interpodaffinity/filtering.go``).
    """
    if len(terms) < 2:
        return ""
    compiled = [compile_term(rejection.pod.metadata.namespace, term) for term in terms]
    matchers = [_matcher(rejection, each) for each in compiled]
    matched: set[int] = set()
    for _, pod in _every_pod(rejection):
        here = {index for index, matches in enumerate(matchers) if matches(pod)[1]}
        if len(here) == len(terms):
            return ""
        matched |= here
    if len(matched) < len(terms):
        return ""
    texts = [f"({pod_term_text(term)})" for term in terms]
    return f"its required pod affinity {' and '.join(texts)}, as no pod matches all of these terms"


def _partners(rejection: Rejection, term: PodAffinityTerm) -> str:
    """Return that no pod matches a term, or in which domains the pods are that do."""
    own = compile_term(rejection.pod.metadata.namespace, term)
    matches = _matcher(rejection, own)
    snapshot, domains, elsewhere = rejection.inquiry.snapshot, set[str](), dict[str, int]()
    for row, pod in _every_pod(rejection):
        selected, matched = matches(pod)
        if matched:
            domain = snapshot.node(row).metadata.labels.get(term.topology_key)
            if domain is not None:
                domains.add(domain)
        elif selected:
            elsewhere[pod.namespace] = elsewhere.get(pod.namespace, 0) + 1
    if domains:
        return f", whose pods are in {term.topology_key} {listed(sorted(domains))}"
    where = f" in namespace {listed(sorted(own.namespaces))}" if own.namespaces else ""
    others = [f"{count} in namespace {name}" for name, count in sorted(elsewhere.items())]
    text = f", as no pod on a node{where} matches {pod_selector_text(term)}"
    return f"{text} ({listed(others)} would)" if others else text


def _away(rejection: Rejection, term: PodAffinityTerm, failed_n: BoolArray) -> str:
    own = compile_term(rejection.pod.metadata.namespace, term)
    matches = _matcher(rejection, own)
    having = _in_domains(rejection, term.topology_key, failed_n, lambda pod: matches(pod)[1])
    text = f"its required pod anti-affinity ({pod_term_text(term)})"
    text = on_some(text, int(failed_n.sum()), len(rejection.rows))
    return f"{text} to {_first_and_count(rejection, having)}" if having else text


def _matcher(rejection: Rejection, term: AffinityTerm) -> Callable[[PodInfo], tuple[bool, bool]]:
    """Return a function that says whether a pod has a term's labels, and is in its namespaces.

    Replicas share their labels, so each set of labels is compared once.
    """
    known: dict[int, tuple[bool, bool]] = {}

    def matches(pod: PodInfo) -> tuple[bool, bool]:
        part = pod.part(LABELS)
        answers = known.get(part.id)
        if answers is None:
            selected = term.selector.matches(pod.labels)
            labels = _namespace_labels(rejection, pod.namespace)
            matched = selected and term.selects_pod(pod.namespace, pod.labels, labels)
            answers = known[part.id] = selected, matched
        return answers

    return matches


def _existing(rejection: Rejection, failed_n: BoolArray) -> str:
    """Return the pods whose required anti-affinity keeps the pod off, with their terms."""
    pod, snapshot = rejection.pod, rejection.inquiry.snapshot
    own_labels = _namespace_labels(rejection, pod.metadata.namespace)
    domains: dict[str, frozenset[str]] = {}
    by_term: dict[str, list[Placed]] = {}
    for row, other in _every_pod(rejection, most=_IN_THE_WAY_MOST):
        compiled = other.part(POD_AFFINITY).value.required_anti
        for term, written in zip(compiled, anti_affinity_terms(other.pod), strict=False):
            if not term.selects_pod(pod.metadata.namespace, pod.metadata.labels, own_labels):
                continue
            key = term.topology_key
            if key not in domains:
                domains[key] = _domains(rejection, key, failed_n)
            if snapshot.node(row).metadata.labels.get(key) in domains[key]:
                by_term.setdefault(pod_term_text(written), []).append((row, other))
    first = sorted(by_term.items(), key=lambda each: (-len(each[1]), each[0]))
    texts = [f"{_first_and_count(rejection, having)} ({text})" for text, having in first]
    found = f"the required anti-affinity of {listed(texts) or 'pods that are there'}"
    return on_some(found, int(failed_n.sum()), len(rejection.rows))


# --- pods in the way ------------------------------------------------------------------------------


def _first_and_count(rejection: Rejection, placed: Sequence[Placed]) -> str:
    """Return the first of some pods by name, and how many more there are."""
    first = min((pod for _, pod in placed), key=lambda pod: pod.key)
    of = owner_words(first) if rejection.never and stays(first, next_to=rejection.pod) else ""
    keys = {pod.key for _, pod in placed}
    if len(keys) == 1:
        return f"{of}pod {first.key}"
    bounded = rejection.inquiry.snapshot.table.pod_total > _IN_THE_WAY_MOST
    return f"{of}pod {first.key} and {'at least ' if bounded else ''}{len(keys) - 1} more"


def _in_domains(
    rejection: Rejection, key: str, failed_n: BoolArray, wanted: Callable[[PodInfo], bool]
) -> list[Placed]:
    """Return the wanted pods in the topology domains of some rows."""
    domains, snapshot = _domains(rejection, key, failed_n), rejection.inquiry.snapshot
    return [
        (row, pod)
        for row, pod in _every_pod(rejection, most=_IN_THE_WAY_MOST)
        if wanted(pod) and snapshot.node(row).metadata.labels.get(key) in domains
    ]


def _domains(rejection: Rejection, key: str, failed_n: BoolArray) -> frozenset[str]:
    labels = [each.labels for each in _nodes(rejection, failed_n)]
    return frozenset(each[key] for each in labels if key in each)


def _nodes(rejection: Rejection, failed_n: BoolArray) -> list[ObjectMeta]:
    snapshot = rejection.inquiry.snapshot
    return [snapshot.node(row).metadata for row in rejection.rows[failed_n].tolist()]


def _pods_on(rejection: Rejection, failed_n: BoolArray) -> Iterator[Placed]:
    """Yield the pods of some rows, and the pods that are nominated first there."""
    rows = rejection.rows[failed_n]
    snapshot = rejection.inquiry.snapshot
    yield from nominated_at(rejection.inquiry, rows)
    yield from ((row, pod) for row in rows.tolist() for pod in snapshot.pods(row))


def _every_pod(rejection: Rejection, *, most: int = _PODS_MOST) -> Iterator[Placed]:
    """Yield the pods of the cluster that are nominated first or on nodes, as far as is bounded.

    Pods on the rejected rows come before the others.
    """
    snapshot = rejection.inquiry.snapshot
    rows = np.arange(snapshot.num_nodes)
    yield from nominated_at(rejection.inquiry, rows)
    first = rejection.rows
    order = [*first.tolist(), *np.setdiff1d(rows, first).tolist()]
    placed = ((row, pod) for row in order for pod in snapshot.pods(row))
    yield from islice(placed, most)


def _namespace_labels(rejection: Rejection, namespace: str) -> Mapping[str, str]:
    found = rejection.inquiry.snapshot.listers.namespaces.get(namespace)
    return {} if found is None else found.metadata.labels
