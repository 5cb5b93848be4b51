"""What a rejection is about, in words: amounts, taints, selectors, ports, constraints.

Only words: which plugin rejects which node comes from the plugins. A plugin without words of its
own is quoted with its reasons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.meta import NodeSelectorTerm
from moorage.api.names import CPU
from moorage.api.node import Taint
from moorage.api.pod import Pod, PodAffinityTerm
from moorage.api.quantity import NANO, from_nano
from moorage.api.taints import SCHEDULING_EFFECTS, tolerated
from moorage.explain.asking import Asked
from moorage.framework.subjects import Subject
from moorage.snapshot.shape import PORTS, RESOURCES

Rows = NDArray[np.int64]

_INSUFFICIENT: Final = "Insufficient "
_TOO_MANY: Final = "Too many pods"
_MILLI_NANO: Final = NANO // 1000
_NAMED_MOST: Final = 3


def amount_text(resource: str, units: int) -> str:
    """Return an amount as a quantity: cpu from millicores, the rest from bytes or units."""
    nano = units * (_MILLI_NANO if resource == CPU else NANO)
    binary = resource == "memory" or "storage" in resource or resource.startswith("hugepages-")
    return from_nano(nano, binary=binary)


def taint_text(taint: Taint) -> str:
    """Return a taint as kubectl writes it: ``key=value:effect``."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def fact_about(
    asked: Asked, plugin: str, *, rows: Rows, reasons: Sequence[str], never: bool
) -> str:
    """Return the subject of a plugin's rejection of some rows, as a noun phrase.

    Parameters
    ----------
    asked
        All answers.
    plugin, rows
        The plugin, and rows that it rejects.
    reasons
        Its reasons on these rows.
    never
        Whether it rejects these rows even when they are empty.
    """
    subject = asked.subject(plugin)
    worded = None if subject is None else _WORDED.get(subject)
    told = worded(asked, rows, reasons, never) if worded is not None else ""
    return told or f"{plugin} ({'; '.join(reasons)})"


# --- resources ------------------------------------------------------------------------------------


def _resources(asked: Asked, rows: Rows, reasons: Sequence[str], never: bool) -> str:
    names = [
        reason.removeprefix(_INSUFFICIENT) for reason in reasons if reason.startswith(_INSUFFICIENT)
    ]
    parts = [_resource(asked, rows, name, never) for name in names]
    if _TOO_MANY in reasons:
        parts.append(_pod_count(asked, rows, never))
    return " and ".join(part for part in parts if part)


def _resource(asked: Asked, rows: Rows, name: str, never: bool) -> str:
    wanted = asked.attempt.pod.part(RESOURCES).value.filter.get(name, 0)
    snapshot = asked.snapshot
    have_n = snapshot.allocatable(name)[rows]
    if not never:
        have_n = have_n - snapshot.requested(name)[rows]
    most = max(0, int(have_n.max()))
    if never and wanted <= most:  # other nodes of the group lack it
        return ""
    what = "the largest of these nodes has" if never else "the most that is free on one of them is"
    if never and most == 0:
        return f"{name} (it requests {amount_text(name, wanted)}, none of these nodes has any)"
    return f"{name} (it requests {amount_text(name, wanted)}, {what} {amount_text(name, most)})"


def _pod_count(asked: Asked, rows: Rows, never: bool) -> str:
    most = int(asked.snapshot.allowed_pods[rows].max())
    if never:
        return f"the number of pods (these nodes take {most})"
    return f"the number of pods (each node has as many as it takes, at most {most})"


# --- nodes that are closed, and nodes that the pod chooses ----------------------------------------


def untolerated(asked: Asked, rows: Rows) -> list[Taint]:
    """Return the taints of some rows that the pod does not tolerate, the most frequent first."""
    column, tolerations = asked.snapshot.taint_sets, asked.attempt.pod.pod.spec.tolerations
    ids, numbers = np.unique(column.ids[rows], return_counts=True)
    by_text: dict[str, Taint] = {}
    counts: Counter[str] = Counter()
    for set_id, number in zip(ids.tolist(), numbers.tolist(), strict=True):
        for taint in column.item(set_id):
            if taint.effect in SCHEDULING_EFFECTS and not tolerated(taint, tolerations):
                by_text.setdefault(taint_text(taint), taint)
                counts[taint_text(taint)] += number
    order = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return [by_text[text] for text, _ in order]


def _taints(asked: Asked, rows: Rows, reasons: Sequence[str], never: bool) -> str:
    del reasons, never
    found = untolerated(asked, rows)
    if not found:
        return ""
    plural = "s" if len(found) > 1 else ""
    return f"the taint{plural} {_listed(map(taint_text, found))}, which it does not tolerate"


def _unschedulable(asked: Asked, rows: Rows, reasons: Sequence[str], never: bool) -> str:
    del reasons, never
    names = sorted(asked.snapshot.names[row] for row in rows.tolist())
    return f"cordoned nodes ({_listed(names)})"


def _node_affinity(asked: Asked, rows: Rows, reasons: Sequence[str], never: bool) -> str:
    del rows, never
    if any("enforced" in reason for reason in reasons):
        return "the node affinity that its profile adds"
    spec = asked.attempt.pod.pod.spec
    parts = []
    if spec.node_selector:
        parts.append(
            f"its nodeSelector {_listed(f'{k}={v}' for k, v in spec.node_selector.items())}"
        )
    node = spec.affinity.node_affinity if spec.affinity else None
    required = node.required_during_scheduling_ignored_during_execution if node else None
    if required is not None:
        terms = " or ".join(map(term_text, required.node_selector_terms))
        parts.append(f"its required node affinity {terms}")
    return " and ".join(parts)


def term_text(term: NodeSelectorTerm) -> str:
    """Return a term of a node affinity in words: ``(disk In [ssd])``."""
    parts = [
        f"{part.key} {part.operator} [{', '.join(part.values)}]"
        if part.values
        else f"{part.key} {part.operator}"
        for part in (*term.match_expressions, *term.match_fields)
    ]
    return f"({', '.join(parts)})"


def _node_name(asked: Asked, rows: Rows, reasons: Sequence[str], never: bool) -> str:
    del rows, reasons, never
    return f"the node that it names, {asked.attempt.pod.pod.spec.node_name}"


# --- other pods -----------------------------------------------------------------------------------


def _ports(asked: Asked, rows: Rows, reasons: Sequence[str], never: bool) -> str:
    del rows, reasons, never
    wanted = [f"{port}/{protocol}" for _, protocol, port in asked.attempt.pod.part(PORTS).value]
    plural = "s" if len(wanted) > 1 else ""
    return f"the host port{plural} {_listed(wanted)}, which other pods have"


def _spread(asked: Asked, rows: Rows, reasons: Sequence[str], never: bool) -> str:
    del rows, never
    spec = asked.attempt.pod.pod.spec
    hard = [
        f"{each.topology_key} (maxSkew {each.max_skew})"
        for each in spec.topology_spread_constraints
        if each.when_unsatisfiable != "ScheduleAnyway"
    ]
    plural = "s" if len(hard) > 1 else ""
    missing = any("missing required label" in reason for reason in reasons)
    lacks = ", whose label these nodes lack" if missing else ""
    return f"its topology spread constraint{plural} over {_listed(hard)}{lacks}" if hard else ""


def _pod_affinity(asked: Asked, rows: Rows, reasons: Sequence[str], never: bool) -> str:
    del rows, never
    pod, parts = asked.attempt.pod.pod, []
    text = "; ".join(reasons)
    if "pod affinity rules" in text:
        parts.append(f"its required pod affinity {_terms(affinity_terms(pod))}")
    if "existing pods anti-affinity" in text:
        parts.append("the required anti-affinity of pods that are there")
    if any("pod anti-affinity rules" in reason and "existing" not in reason for reason in reasons):
        parts.append(f"its required pod anti-affinity {_terms(anti_affinity_terms(pod))}")
    return " and ".join(parts)


def affinity_terms(pod: Pod) -> list[PodAffinityTerm]:
    """Return the required pod affinity terms of a pod."""
    found = pod.spec.affinity.pod_affinity if pod.spec.affinity else None
    return [] if found is None else found.required_during_scheduling_ignored_during_execution


def anti_affinity_terms(pod: Pod) -> list[PodAffinityTerm]:
    """Return the required pod anti-affinity terms of a pod."""
    found = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
    return [] if found is None else found.required_during_scheduling_ignored_during_execution


def pod_term_text(term: PodAffinityTerm) -> str:
    """Return a pod affinity term in words: ``app=web over zone``."""
    selector = term.label_selector
    parts = []
    if selector is not None:
        parts += [f"{key}={value}" for key, value in (selector.match_labels or {}).items()]
        parts += [
            f"{part.key} {part.operator} [{', '.join(part.values or ())}]"
            for part in selector.match_expressions or ()
        ]
    return f"{', '.join(parts) or 'any pod'} over {term.topology_key}"


def _terms(terms: Iterable[PodAffinityTerm]) -> str:
    return _listed(f"({pod_term_text(term)})" for term in terms)


def _listed(items: Iterable[str]) -> str:
    every = list(items)
    if len(every) <= _NAMED_MOST:
        return ", ".join(every)
    return f"{', '.join(every[:_NAMED_MOST])} and {len(every) - _NAMED_MOST} more"


_WORDED: Final[dict[Subject, Callable[[Asked, Rows, Sequence[str], bool], str]]] = {
    Subject.RESOURCES: _resources,
    Subject.TAINTS: _taints,
    Subject.CORDON: _unschedulable,
    Subject.NODE_AFFINITY: _node_affinity,
    Subject.NODE_NAME: _node_name,
    Subject.PORTS: _ports,
    Subject.SPREAD: _spread,
    Subject.POD_AFFINITY: _pod_affinity,
}
