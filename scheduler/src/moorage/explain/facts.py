"""The subject of a rejection in words; resources here, the rest in modules by subject.

Only words: which plugin rejects which node comes from the plugins. A plugin without words of its
own is quoted with its reasons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Container
from moorage.api.quantity import parse_quantity
from moorage.api.requests import to_units
from moorage.engine.inquiry import NEXT_TO_NOMINATED
from moorage.explain.devices import device_facts
from moorage.explain.node_facts import (
    cordon_fact,
    features_fact,
    node_affinity_fact,
    node_name_fact,
    taints_fact,
)
from moorage.explain.offers import offering_too_little
from moorage.explain.pod_facts import pod_affinity_fact, ports_fact, spread_fact
from moorage.explain.rejections import Rejection, nominated_at
from moorage.explain.staying import owner_words, staying_pods
from moorage.explain.volumes import volume_facts, volume_use_facts
from moorage.explain.words import amount_text, joined, on_some, request_text
from moorage.framework.subjects import Subject
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES

IntArray = NDArray[np.int64]

_INSUFFICIENT: Final = "Insufficient "
_TOO_MANY: Final = "Too many pods"
_AT_PRE_FILTER: Final = frozenset({Subject.VOLUMES, Subject.VOLUME_USE, Subject.DEVICES})
"""The subjects whose words need no nodes."""


def fact_about(rejection: Rejection) -> str:
    """Return the subject of a plugin's rejection of some rows, as a noun phrase."""
    subject = rejection.inquiry.subject(rejection.plugin)
    worded = None if subject is None else _WORDED.get(subject)
    if not len(rejection.rows) and subject not in _AT_PRE_FILTER:
        worded = None  # words about nodes
    told = worded(rejection) if worded is not None else ""
    return told or f"{rejection.plugin} ({'; '.join(rejection.reasons)})"


# --- resources ------------------------------------------------------------------------------------


def _resources(rejection: Rejection) -> str:
    reasons = [each.removesuffix(NEXT_TO_NOMINATED) for each in rejection.reasons]
    names = dict.fromkeys(
        each.removeprefix(_INSUFFICIENT) for each in reasons if each.startswith(_INSUFFICIENT)
    )
    parts = [_resource(rejection, name) for name in names]
    if _TOO_MANY in reasons:
        parts.append(_pod_count(rejection))
    return joined([part for part in parts if part])


def _resource(rejection: Rejection, name: str) -> str:
    """Return a resource of which some of these rows have too little; "" where none has."""
    rows, snapshot = rejection.rows, rejection.inquiry.snapshot
    wanted = rejection.inquiry.attempt.pod.part(RESOURCES).value.filter.get(name, 0)
    others_n, others = _next_to(rejection, name)
    have_n = snapshot.allocatable(name)[rows] - others_n
    lacking_n = have_n < wanted
    if not lacking_n.any():
        return ""
    most = max(0, int(have_n[lacking_n].max()))
    asks = f"it requests {request_text(name, wanted, rejection.pod.spec)}"
    asks += _for_container(rejection, name, wanted)
    what = "the most that is free on one of them is"
    if rejection.never:
        what = "the largest of these nodes has"
    has = f"{what} {amount_text(name, most)}"
    if rejection.never and not snapshot.allocatable(name)[rows].any():
        has = "none of these nodes has any"
        if offering_too_little(rejection.inquiry, name, rows).any():
            has = "these nodes have it, but offer none now"
    return on_some(f"{name} ({asks}, {has}{others})", int(lacking_n.sum()), len(rows))


def _next_to(rejection: Rejection, name: str) -> tuple[IntArray, str]:
    """Return what other pods take of a resource on each row, and words about them.

    Of empty rows these are the pods that stay, such as those of DaemonSets; of rows as they are,
    the words are about the pods that are nominated first.
    """
    inquiry, rows = rejection.inquiry, rejection.rows
    if rejection.never:
        wanted = inquiry.attempt.pod.part(RESOURCES).value.filter.get(name, 0)
        large_n = inquiry.snapshot.allocatable(name)[rows] >= wanted  # only there pods decide
        taken_n, others = np.zeros(len(rows), np.int64), staying_pods(inquiry, rows[large_n])
    else:
        taken_n = inquiry.snapshot.requested(name)[rows].copy()
        others = nominated_at(inquiry, rows)
    place = {row: index for index, row in enumerate(rows.tolist())}
    takers: list[tuple[str, PodInfo, int]] = []
    for row, pod in others:
        amount = pod.part(RESOURCES).value.balanced.get(name, 0)
        if amount:
            taken_n[place[row]] += amount
            takers.append((pod.key, pod, amount))
    if not takers:
        return taken_n, ""
    key, pod, amount = min(takers, key=lambda each: each[0])
    of = owner_words(pod) if rejection.never else "nominated "
    more = f", and {len(takers) - 1} more" if len(takers) > 1 else ""
    return taken_n, f" next to {of}pod {key}, which takes {amount_text(name, amount)}{more}"


def _for_container(rejection: Rejection, name: str, wanted: int) -> str:
    """Return the init container for which the pod requests so much; "" where it is none."""
    spec = rejection.pod.spec

    def own(container: Container) -> int:
        return to_units(name, parse_quantity(container.resources.requests.get(name, 0)))

    if spec.resources is not None and name in spec.resources.requests:
        return ""
    sidecars = [each for each in spec.init_containers if each.is_restartable_init]
    running = sum(own(each) for each in (*spec.containers, *sidecars))
    over = to_units(name, parse_quantity(spec.overhead.get(name, 0)))
    inits = [each for each in spec.init_containers if not each.is_restartable_init]
    if running + over >= wanted or not inits:
        return ""
    largest = max(inits, key=own)
    return f" for its init container {largest.name}"


def _pod_count(rejection: Rejection) -> str:
    inquiry, rows = rejection.inquiry, rejection.rows
    allowed_n = inquiry.snapshot.allowed_pods[rows]
    if not rejection.never:
        most = int(allowed_n.max())
        text = f"the number of pods (each node has as many as it takes, at most {most}"
        first = sorted(pod.key for _, pod in nominated_at(inquiry, rows))
        more = f" and {len(first) - 1} more" if len(first) > 1 else ""
        return f"{text}, with nominated pod {first[0]}{more})" if first else f"{text})"
    staying = Counter(row for row, _ in staying_pods(inquiry, rows))
    left = [allowed - staying[row] for row, allowed in zip(rows.tolist(), allowed_n, strict=True)]
    if min(left) > 0:  # an empty node takes it: the number is no cause
        return ""
    next_to = ", next to those of DaemonSets" if staying else ""
    return f"the number of pods (these nodes take at most {int(allowed_n.max())}{next_to})"


_WORDED: Final[dict[Subject, Callable[[Rejection], str]]] = {
    Subject.RESOURCES: _resources,
    Subject.TAINTS: taints_fact,
    Subject.CORDON: cordon_fact,
    Subject.NODE_AFFINITY: node_affinity_fact,
    Subject.NODE_NAME: node_name_fact,
    Subject.PORTS: ports_fact,
    Subject.SPREAD: spread_fact,
    Subject.POD_AFFINITY: pod_affinity_fact,
    Subject.FEATURES: features_fact,
    Subject.VOLUMES: volume_facts,
    Subject.VOLUME_USE: volume_use_facts,
    Subject.DEVICES: device_facts,
}
