"""Suggestions that lower a request: the exact most that fits, found by the Filters themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.patch_operations import Operation, escaped, put
from moorage.api.pod import Container, Pod
from moorage.api.quantity import parse_quantity
from moorage.api.requests import pod_requests, to_units
from moorage.engine.inquiry import Inquiry
from moorage.explain.answer import Suggestion
from moorage.explain.patches import patched
from moorage.explain.suggestions.ranked import REQUEST, REQUEST_SHARE, RankedSuggestion
from moorage.explain.trying import Trying
from moorage.explain.words import amount_text, request_text, rounded_text
from moorage.framework.subjects import Subject
from moorage.snapshot.shape import RESOURCES

Rows = NDArray[np.int64]

_HUGE_PAGES: Final = "hugepages-"
_ROUNDS_MOST: Final = 64


def smaller_requests(trying: Trying) -> Iterator[RankedSuggestion]:
    """Yield the most of each resource that fits, one resource at a time.

    Where no single resource is enough, the only answer lowers every resource that is too large.
    """
    wanted = trying.inquiry.attempt.pod.part(RESOURCES).value.filter
    if not any(each for each in wanted.values()) or not _may_be_about_requests(trying.inquiry):
        return
    fits = False
    for resource in sorted(name for name, units in wanted.items() if units):
        least = with_request(trying.pod, resource, 1)
        if least is None:
            continue
        rows = trying.with_patch(least)
        if not len(rows):
            continue
        most = _most(trying, resource, rows, wanted[resource])
        if most is not None:
            fits = True
            yield from _ranked(trying, {resource: most}, wanted)
    if not fits:
        yield from _ranked(trying, _all_too_large(trying, wanted), wanted)


def _may_be_about_requests(inquiry: Inquiry) -> bool:
    """Whether some rejection is about requests, or does not say what it is about."""
    if inquiry.pre_filter.status.rejected:
        return True
    return any(inquiry.subject(plugin) in (None, Subject.RESOURCES) for plugin in inquiry.rejects)


def _all_too_large(trying: Trying, wanted: Mapping[str, int]) -> dict[str, int]:
    """Return the most of each resource that is too large, on the node that leaves most of them."""
    snapshot, rows = trying.inquiry.snapshot, trying.rows_of(_with_all(trying.pod, wanted, 1))
    if not len(rows):
        return {}
    names = sorted(name for name, units in wanted.items() if units)
    free = {
        name: snapshot.allocatable(name)[rows] - snapshot.requested(name)[rows] for name in names
    }
    share_n = np.min([np.minimum(1.0, free[name] / wanted[name]) for name in names], axis=0)
    best = int(share_n.argmax())
    return {name: int(free[name][best]) for name in names if free[name][best] < wanted[name]}


def _with_all(pod: Pod, wanted: Mapping[str, int], units: int) -> Pod:
    """Return a pod that requests so little of everything; resources that stay are left alone."""
    for name in sorted(name for name, amount in wanted.items() if amount):
        pod = patched(pod, with_request(pod, name, units) or [])
    return pod


def _ranked(
    trying: Trying, most: Mapping[str, int], wanted: Mapping[str, int]
) -> Iterator[RankedSuggestion]:
    pod, operations = trying.pod, list[Operation]()
    most = {resource: _divisible(resource, units) for resource, units in most.items()}
    for resource, units in most.items():
        found = with_request(pod, resource, units) if units > 0 else None
        if found is None:
            return
        operations += found
        pod = patched(pod, found)
    rows = trying.rows_of(pod, trying.inquiry.snapshot.all())
    if not most or not len(rows):
        return
    spec = trying.pod.spec
    parts = [
        f"at most {rounded_text(name, units)} {name} instead of "
        f"{request_text(name, wanted[name], spec)}"
        for name, units in most.items()
    ]
    suggestion = Suggestion(
        kind="request",
        text=f"request {' and '.join(parts)}",
        nodes=len(rows),
        node=trying.first_name(rows),
        patch=tuple(operations),
    )
    given_up = max((wanted[name] - units) / wanted[name] for name, units in most.items())
    yield RankedSuggestion(REQUEST + REQUEST_SHARE * given_up, suggestion)


def _divisible(resource: str, units: int) -> int:
    """Return an amount that the API takes: hugepages are multiples of their size."""
    if not resource.startswith(_HUGE_PAGES):
        return units
    size = to_units(resource, parse_quantity(resource.removeprefix(_HUGE_PAGES)))
    return units // size * size


def _most(trying: Trying, resource: str, rows: Rows, wanted: int) -> int | None:
    """Return the greatest request that fits some of the rows, by trying; None where none does.

    The columns give a first guess. Filters say whether it fits, and that one unit more does not;
    where that is not so, the interval is halved.
    """
    snapshot = trying.inquiry.snapshot
    free = int((snapshot.allocatable(resource)[rows] - snapshot.requested(resource)[rows]).max())
    view = snapshot.rows(rows)

    def fits(units: int) -> bool:
        operations = with_request(trying.pod, resource, units)
        return operations is not None and bool(
            len(trying.rows_of(patched(trying.pod, operations), view))
        )

    low, high = 1, wanted  # `rows` take the least, and nothing takes what is wanted
    if 1 <= free < wanted:
        if fits(free):
            low = free
            if free + 1 == wanted or not fits(free + 1):
                return free
        else:
            high = free
    for _ in range(_ROUNDS_MOST):
        if high - low <= 1:
            return low if fits(low) else None
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return None


def with_request(pod: Pod, resource: str, units: int) -> list[Operation] | None:
    """Return the patch with which a pod requests exactly so much in all; None where none does.

    The largest containers give up most. Limits that must equal the request follow it.

    Parameters
    ----------
    pod
        The pod.
    resource, units
        The resource, and the amount in scheduling units (millicores, bytes).
    """
    whole = pod.spec.resources
    if whole is not None and resource in whole.requests:
        over = to_units(resource, parse_quantity(pod.spec.overhead.get(resource, 0)))
        if units <= over:
            return None
        path = f"/spec/resources/requests/{escaped(resource)}"
        changes = [put(path, amount_text(resource, units - over))]
        # The API refuses containers that request more in all than their pod.
        running = sum(_own(each, resource) for each in pod.spec.containers)
        changes += _lowered(pod.spec.containers, "containers", resource, running - units + over)
        changes += _capped(pod.spec.init_containers, resource, units - over)
        return _checked(pod, changes, resource, units)
    operations = _lowered(
        pod.spec.containers, "containers", resource, _total(pod, resource) - units
    )
    changed = patched(pod, operations)
    more = _total(changed, resource) - units
    if more > 0:  # an init container decides
        inits = changed.spec.init_containers
        operations += _capped(inits, resource, units - _overhead(pod, resource))
    return _checked(pod, operations, resource, units)


def _checked(
    pod: Pod, operations: list[Operation], resource: str, units: int
) -> list[Operation] | None:
    return operations if _total(patched(pod, operations), resource) == units else None


def _total(pod: Pod, resource: str) -> int:
    return to_units(resource, pod_requests(pod, use_status=False, pod_level=True).get(resource, 0))


def _overhead(pod: Pod, resource: str) -> int:
    return to_units(resource, parse_quantity(pod.spec.overhead.get(resource, 0)))


def _own(container: Container, resource: str) -> int:
    return to_units(resource, parse_quantity(container.resources.requests.get(resource, 0)))


def _lowered(
    containers: Sequence[Container], field: str, resource: str, less: int
) -> list[Operation]:
    """Return the operations by which containers give up an amount, the largest first."""
    operations: list[Operation] = []
    order = sorted(enumerate(containers), key=lambda each: (-_own(each[1], resource), each[0]))
    for index, container in order:
        own = _own(container, resource)
        given = min(less, own)
        if given <= 0:
            continue
        less -= given
        operations += _set(container, f"/spec/{field}/{index}", resource, own - given)
    return operations


def _capped(inits: Sequence[Container], resource: str, most: int) -> list[Operation]:
    operations: list[Operation] = []
    for index, container in enumerate(inits):
        if _own(container, resource) > most > 0 and not container.is_restartable_init:
            operations += _set(container, f"/spec/initContainers/{index}", resource, most)
    return operations


def _set(container: Container, path: str, resource: str, units: int) -> list[Operation]:
    key, amount = escaped(resource), amount_text(resource, units)
    operations = [put(f"{path}/resources/requests/{key}", amount)]
    follows = "/" in resource or resource.startswith(_HUGE_PAGES)
    if follows and resource in container.resources.limits:
        operations.append(put(f"{path}/resources/limits/{key}", amount))
    return operations
