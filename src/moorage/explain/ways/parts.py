"""Ways out that change one part of the pod: a toleration more, a rule or a port less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from moorage.api.codec import to_dict
from moorage.api.patch_operations import Operation, escaped, put, remove
from moorage.api.pod import Pod
from moorage.explain.answer import WayOut
from moorage.explain.node_facts import untolerated
from moorage.explain.pod_facts import affinity_terms, anti_affinity_terms
from moorage.explain.trying import Trying
from moorage.explain.ways.found import PART, TOLERATION, Found
from moorage.explain.words import expression_text, pod_term_text, taint_text, terms_text
from moorage.framework.subjects import Subject

_TAINTS_MOST: Final = 4
_LIFECYCLE: Final = "node.kubernetes.io/"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"

Change = tuple[str, str, Operation]
"""Kind, text, patch."""


def tolerations(trying: Trying) -> Iterator[Found]:
    """Yield the taints that the pod could tolerate, one at a time.

    Taints that tell the condition of a node, such as not ready, are left out: tolerating them gets
    the pod a node on which it does not run.
    """
    asked = trying.asked
    found = untolerated(asked, np.flatnonzero(asked.rejects_about(Subject.TAINTS)))
    present = [to_dict(each) for each in trying.pod.spec.tolerations]
    own = [taint for taint, _ in found if not taint.key.startswith(_LIFECYCLE)]
    for taint in own[:_TAINTS_MOST]:
        added = {"key": taint.key, "operator": "Equal", "effect": taint.effect}
        if taint.value:
            added["value"] = taint.value
        text = f"tolerate the taint {taint_text(taint)}"
        change = ("toleration", text, put("/spec/tolerations", [*present, added]))
        yield from _tried(trying, change, TOLERATION)


def relaxations(trying: Trying) -> Iterator[Found]:
    """Yield the rules of the pod that could be dropped, one at a time."""
    pod = trying.pod
    found = [each for change in _selector(pod) for each in _tried(trying, change, PART)]
    if not found and len(pod.spec.node_selector or {}) > 1:
        whole = ("selector", "drop its whole nodeSelector", remove("/spec/nodeSelector"))
        found = list(_tried(trying, whole, PART))
    yield from found
    for change in (*_node_affinity(pod), *_pod_terms(pod), *_spread(pod)):
        yield from _tried(trying, change, PART)
    for change in _ports(pod):
        yield from _tried(trying, change, PART)


def _tried(trying: Trying, change: Change, size: float) -> Iterator[Found]:
    kind, text, operation = change
    rows = trying.with_patch([operation])
    if len(rows):
        way = WayOut(
            kind=kind,
            text=text,
            nodes=len(rows),
            node=trying.first_name(rows),
            patch=(operation,),
        )
        yield Found(size, way)


def _selector(pod: Pod) -> Iterator[Change]:
    selector = pod.spec.node_selector or {}
    for key, value in selector.items():
        path = f"/spec/nodeSelector/{escaped(key)}"
        yield "selector", f"drop {key}={value} from its nodeSelector", remove(path)


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
            yield "affinity term", text, remove(here)
    text = f"drop its required node affinity {terms_text(required)}"
    yield "affinity term", text, remove(path)


def _pod_terms(pod: Pod) -> Iterator[Change]:
    for field, name, terms in (
        ("podAffinity", "pod affinity", affinity_terms(pod)),
        ("podAntiAffinity", "pod anti-affinity", anti_affinity_terms(pod)),
    ):
        for index, term in enumerate(terms):
            path = f"/spec/affinity/{field}/{_REQUIRED}/{index}"
            text = f"drop its required {name} ({pod_term_text(term)})"
            yield "affinity term", text, remove(path)


def _spread(pod: Pod) -> Iterator[Change]:
    for index, each in enumerate(pod.spec.topology_spread_constraints):
        if each.when_unsatisfiable == "ScheduleAnyway":
            continue
        path = f"/spec/topologySpreadConstraints/{index}/whenUnsatisfiable"
        text = f"let its spread constraint over {each.topology_key} be ScheduleAnyway"
        yield "constraint", text, put(path, "ScheduleAnyway")


def _ports(pod: Pod) -> Iterator[Change]:
    if pod.spec.host_network:  # each port is a host port then, and cannot be taken off
        return
    for at, container in enumerate(pod.spec.containers):
        for index, port in enumerate(container.ports):
            if port.host_port:
                path = f"/spec/containers/{at}/ports/{index}/hostPort"
                yield "host port", f"do without the host port {port.host_port}", remove(path)
