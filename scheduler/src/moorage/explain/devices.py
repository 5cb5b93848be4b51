"""The subjects of rejections because of devices, and whether free devices would help.

Nothing here compares devices with requests. The plugin is asked again about a changed cluster:
without the allocations of other pods, without the taints of devices, or with a claim that asks for
less. The first change with which it takes a node is the fact.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.devices import (
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceClaim,
    ResourceSlice,
)
from moorage.api.pod import Pod
from moorage.api.taints import SCHEDULING_EFFECTS, concerns_slice, taints_device
from moorage.engine.inquiry import Inquiry
from moorage.explain.offers import resources_of_classes, with_only
from moorage.explain.parts import parts_at_fault
from moorage.explain.rejections import Rejection, ask_again
from moorage.explain.words import joined, listed, terms_text
from moorage.snapshot.listers import Lister
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

_Pool = tuple[str, str]
"""Driver and name of a pool."""
_ASKED_MOST: Final = 64
"""Nodes of which it is asked whether they have a device of the class, at most; a guess."""
_ROWS_MOST: Final = 32
"""Nodes that are asked about again, at most: each costs a search for devices."""


def device_facts(rejection: Rejection) -> str:
    """Return the claims whose devices are not on these rows, and why."""
    entries = rejection.pod.spec.resource_claims
    if not entries:
        return _behind_resources(rejection)
    pod = rejection.pod
    claims = claims_of(pod, rejection.inquiry.snapshot)
    if not len(rejection.rows):
        return " and ".join(_without_class(rejection, claims))
    rejection = msgspec.structs.replace(rejection, rows=rejection.rows[:_ROWS_MOST])
    lines = [(claim, pod) for claim in claims]
    if len(claims) > 1:
        lines = _rejected_alone(rejection, claims) or lines
        if rejection.never and len(lines) == len(claims) and lines[0][1] is pod:
            names = [claim.name for claim in claims if claim.status.allocation is None]
            return f"its resource claims {joined(names)}, for all of which no node has devices"
    return " and ".join(_fact(rejection, claim, wanting=wanting) for claim, wanting in lines)


def _behind_resources(rejection: Rejection) -> str:
    """Return the extended resources whose devices are not on these rows; "" for none."""
    if not len(rejection.rows):
        return ""
    rejection = msgspec.structs.replace(rejection, rows=rejection.rows[:_ROWS_MOST])
    pod = rejection.pod
    classes = resources_of_classes(rejection.inquiry)
    found = parts_at_fault(rejection, list(classes), lambda names: with_only(pod, classes, names))
    return joined([_behind_resource(rejection, name, classes[name]) for name, _ in found])


def _behind_resource(rejection: Rejection, name: str, of_class: str) -> str:
    pod, snapshot = rejection.pod, rejection.inquiry.snapshot
    wanted = rejection.inquiry.attempt.pod.part(RESOURCES).value.filter[name]
    its = f"{name} (it requests {wanted}, device class {of_class})"
    if not rejection.never:
        return f"{its}, whose devices on these nodes other pods have"
    pools = {_pool_of(each) for each in _slices_of(rejection)}
    with released_devices(snapshot, _released(snapshot, pod, pools)):
        none = rejection.again(with_only(pod, (name,), (name,), count=1))
    if none:
        return f"{its}, for which these nodes offer no device"
    return f"{its}, which asks for more devices than these nodes offer"


def _rejected_alone(
    rejection: Rejection, claims: Sequence[ResourceClaim]
) -> list[tuple[ResourceClaim, Pod]]:
    """Return the claims that get no devices alone either, each with a pod that has no other.

    Where the rows reject the pod for ever, the devices of other pods count as free.
    """
    snapshot, pod = rejection.inquiry.snapshot, rejection.pod
    pools = {_pool_of(each) for each in _slices_of(rejection)} if rejection.never else ()
    with released_devices(snapshot, _released(snapshot, pod, pools)):
        alone = [(claim, _with_claim(pod, claim)) for claim in claims]
        return [each for each in alone if rejection.again(each[1])]


def claims_of(pod: Pod, snapshot: Snapshot) -> list[ResourceClaim]:
    """Return the resource claims of a pod that exist."""
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    names = [
        entry.resource_claim_name or made.get(entry.name) for entry in pod.spec.resource_claims
    ]
    found = (snapshot.claims.get(pod.metadata.namespace, name) for name in names if name)
    return [claim for claim in found if claim is not None]


def _with_claim(pod: Pod, claim: ResourceClaim) -> Pod:
    """Return a pod with one of its claims."""
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    claims = [
        entry
        for entry in pod.spec.resource_claims
        if claim.name in (entry.resource_claim_name, made.get(entry.name))
    ]
    return msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, resource_claims=claims)
    )


def _fact(rejection: Rejection, claim: ResourceClaim, *, wanting: Pod) -> str:
    """Return why a claim gets no devices, with the pod that is tried."""
    allocation = claim.status.allocation
    if allocation is not None:
        where = allocation.node_selector
        nodes = f"for nodes with {terms_text(where)}" if where is not None else "not ready"
        return f"its resource claim {claim.name}, whose devices are {nodes}"
    its = f"its resource claim {claim.name}{_classes(claim)}"
    snapshot = rejection.inquiry.snapshot
    slices = _slices_of(rejection)
    pools = {_pool_of(each) for each in slices}
    if not rejection.never:
        taken = _taken(_released(snapshot, rejection.pod, pools), pools)
        asks = f"it asks for {_count_text(claim)}{taken}"
        return f"{its}, whose devices on these nodes other pods have ({asks})"
    with released_devices(snapshot, _released(snapshot, rejection.pod, pools)):
        taints = _taints_text(slices, snapshot.listers.device_taint_rules.all())
        with _untainted(snapshot, slices):
            if taints and not rejection.again(wanting):
                return f"{its}, which does not tolerate {taints} of devices"
        for change, text in _CHANGES:
            with _changed(snapshot.listers.resource_claims, [(claim, _asking(claim, change))]):
                if not rejection.again(wanting):
                    more = _most(rejection, claim, wanting) if change is _one_device else ""
                    return f"{its}, {text}{more}"
    return f"{its}, for which these nodes offer no device"


def _taken(claims: Iterable[ResourceClaim], pools: Collection[_Pool]) -> str:
    """Return how many devices of some pools other pods have, and which pods; "" for none."""
    count, users = 0, set[str]()
    for each in claims:
        count += sum((one.driver, one.pool) in pools for one in _devices_of(each))
        users |= {f"{each.metadata.namespace}/{user.name}" for user in each.status.reserved_for}
    if not users:
        return ""
    plural, have = ("s", "have") if len(users) > 1 else ("", "has")
    return f"; pod{plural} {listed(sorted(users))} {have} {count}"


def _count(claim: ResourceClaim) -> int:
    """Return how many devices a claim asks for; 0 where it asks for all."""
    count = 0
    for request in claim.spec.devices.requests:
        own = request.exactly or next(iter(request.first_available), None)
        if own is None or own.allocation_mode == "All":
            return 0
        count += own.count or 1
    return count


def _count_text(claim: ResourceClaim) -> str:
    return str(_count(claim) or "all")


def _most(rejection: Rejection, claim: ResourceClaim, wanting: Pod) -> str:
    """Return how many devices a claim of one request asks for, and the most that a node has."""
    wanted = _count(claim)
    if len(claim.spec.devices.requests) != 1 or wanted < 2:
        return ""
    low, high = 1, wanted  # one fits, what is wanted does not
    lister = rejection.inquiry.snapshot.listers.resource_claims
    while high - low > 1:
        middle = (low + high) // 2
        with _changed(lister, [(claim, _asking(claim, partial(_some_devices, middle)))]):
            fits = not rejection.again(wanting)
        low, high = (middle, high) if fits else (low, middle)
    return f" (it asks for {wanted}, one of these nodes has {low} at most)"


def _without_class(rejection: Rejection, claims: Iterable[ResourceClaim]) -> Iterator[str]:
    """Yield the claims of which PreFilter did not find a device class."""
    known = rejection.inquiry.snapshot.listers.device_classes
    for claim in claims:
        missing = [name for name in _class_names(claim) if known.get(name) is None]
        if missing and "does not exist" in " ".join(rejection.reasons):
            plural, do = ("es", "do") if len(missing) > 1 else ("", "does")
            classes = f"device class{plural} {listed(missing)} {do} not exist"
            yield f"its resource claim {claim.name}, whose {classes}"


def _class_names(claim: ResourceClaim) -> list[str]:
    return list(
        dict.fromkeys(
            each.device_class_name
            for request in claim.spec.devices.requests
            for each in ([request.exactly] if request.exactly else request.first_available)
        )
    )


def _classes(claim: ResourceClaim) -> str:
    names = _class_names(claim)
    plural = "es" if len(names) > 1 else ""
    return f" (device class{plural} {listed(names)})"


# --- changes that are tried -----------------------------------------------------------------------


def of_others(pod: Pod, claim: ResourceClaim) -> bool:
    """Whether other pods have the devices of a claim."""
    users = claim.status.reserved_for
    return (
        claim.status.allocation is not None
        and bool(users)
        and all(user.uid != pod.uid for user in users)
    )


def _released(snapshot: Snapshot, pod: Pod, pools: Collection[_Pool]) -> list[ResourceClaim]:
    """Return the claims by which other pods have devices of some pools."""
    return [
        claim
        for claim in snapshot.listers.resource_claims.all()
        if any((each.driver, each.pool) in pools for each in _devices_of(claim))
        and of_others(pod, claim)
    ]


@contextmanager
def released_devices(snapshot: Snapshot, claims: Iterable[ResourceClaim]) -> Iterator[None]:
    """Take the allocations off some claims on trial."""
    lister = snapshot.listers.resource_claims
    with _changed(lister, [(claim, _unallocated(claim)) for claim in claims]):
        yield


def _unallocated(claim: ResourceClaim) -> ResourceClaim:
    status = msgspec.structs.replace(claim.status, allocation=None, reserved_for=[])
    return msgspec.structs.replace(claim, status=status)


@contextmanager
def _untainted(snapshot: Snapshot, slices: Sequence[ResourceSlice]) -> Iterator[None]:
    """Take the taints off the devices of some slices on trial, those of rules as well."""
    tainted = [each for each in slices if any(device.taints for device in each.spec.devices)]
    changes = [(each, _without_taints(each)) for each in tainted]
    rules = [
        (rule, _without_effect(rule))
        for rule in snapshot.listers.device_taint_rules.all()
        if any(concerns_slice(rule, each) for each in slices)
    ]
    with (
        _changed(snapshot.listers.resource_slices, changes),
        _changed(snapshot.listers.device_taint_rules, rules),
    ):
        yield


def _without_taints(each: ResourceSlice) -> ResourceSlice:
    devices = [msgspec.structs.replace(device, taints=[]) for device in each.spec.devices]
    return msgspec.structs.replace(each, spec=msgspec.structs.replace(each.spec, devices=devices))


def _without_effect(rule: DeviceTaintRule) -> DeviceTaintRule:
    taint = msgspec.structs.replace(rule.spec.taint, effect="None")
    return msgspec.structs.replace(rule, spec=msgspec.structs.replace(rule.spec, taint=taint))


@contextmanager
def _changed(
    lister: Lister[ResourceClaim] | Lister[ResourceSlice] | Lister[DeviceTaintRule],
    changes: Iterable[tuple[object, object]],
) -> Iterator[None]:
    """Put other versions of objects into a lister, and the known ones back."""
    changes = list(changes)
    for _, new in changes:
        lister.put(new)  # type: ignore[arg-type]  # changes are of the lister's kind
    try:
        yield
    finally:
        for known, _ in changes:
            lister.put(known)  # type: ignore[arg-type]


def _slices_of(rejection: Rejection) -> list[ResourceSlice]:
    """Return the slices that the rejected rows may see: their own, and those of many nodes."""
    snapshot = rejection.inquiry.snapshot
    names = {"", *(snapshot.names[row] for row in rejection.rows.tolist())}
    return [each for each in snapshot.listers.resource_slices.all() if each.spec.node_name in names]


def rows_without_class(inquiry: Inquiry, plugin: str) -> NDArray[np.bool_]:
    """Return bool, (nodes,): rows on which no driver offers a device of the claims' classes.

    Where drivers offer devices, the plugin is asked about one device for each request alone, with
    every device free and every taint tolerated; on a bounded number of rows.
    """
    without_n = ~rows_with_devices(inquiry)
    rows = np.flatnonzero(inquiry.rejects[plugin] & ~without_n)[:_ASKED_MOST]
    if not len(rows):
        return without_n
    pod, lister = inquiry.attempt.pod.pod, inquiry.snapshot.listers.resource_claims
    for wanting, changes in _single_devices(inquiry):
        with _changed(lister, changes):
            free = partial(of_others, pod)
            _status, answer = ask_again(inquiry, plugin, rows, wanting, given_back=free)
        if answer is not None:
            without_n[rows] |= answer.failed_n
    return without_n


def _single_devices(
    inquiry: Inquiry,
) -> Iterator[tuple[Pod, list[tuple[ResourceClaim, ResourceClaim]]]]:
    """Yield a pod for each of its requests for devices alone, and the claim for one device."""
    pod = inquiry.attempt.pod.pod
    for claim in claims_of(pod, inquiry.snapshot):
        for one in _of_classes(claim):
            yield _with_claim(pod, claim), [(claim, one)]
    if not pod.spec.resource_claims:
        names = resources_of_classes(inquiry)
        for name in names:
            yield with_only(pod, names, (name,), count=1), []


def _of_classes(claim: ResourceClaim) -> Iterator[ResourceClaim]:
    """Yield a claim for one device of the class of each request, whatever its taints.

    Two requests may have no devices together though a driver offers the class of each.
    """
    asked = _asking(_asking(claim, _of_class), _same).spec.devices
    for request in {_of_request(each): each for each in asked.requests}.values():
        devices = msgspec.structs.replace(asked, requests=[request])
        yield msgspec.structs.replace(
            claim, spec=msgspec.structs.replace(claim.spec, devices=devices)
        )


def _of_request(request: DeviceRequest) -> tuple[str, ...]:
    asked = [request.exactly] if request.exactly else request.first_available
    return tuple(each.device_class_name for each in asked)


def _of_class(request: DeviceRequest) -> DeviceRequest:
    # Tolerations, as taints taken off the devices of all nodes would be counted anew.
    tolerating = _replaced(request, tolerations=[DeviceToleration(operator="Exists")])
    return _one_device(_without_selectors(tolerating))


def rows_with_devices(inquiry: Inquiry) -> NDArray[np.bool_]:
    """Return bool, (nodes,): the rows that some driver offers devices on."""
    found_n = np.zeros(inquiry.snapshot.num_nodes, np.bool_)
    for each in inquiry.snapshot.listers.resource_slices.all():
        if not each.spec.devices:
            continue
        if not each.spec.node_name:
            return np.ones(inquiry.snapshot.num_nodes, np.bool_)  # devices of many nodes
        row = inquiry.snapshot.row_of(each.spec.node_name)
        if row is not None:
            found_n[row] = True
    return found_n


def rows_near(snapshot: Snapshot, claims: Iterable[ResourceClaim]) -> NodeView:
    """Return the rows that may see the devices of some claims."""
    pools = {(each.driver, each.pool) for claim in claims for each in _devices_of(claim)}
    slices = [each for each in snapshot.listers.resource_slices.all() if _pool_of(each) in pools]
    rows = [snapshot.row_of(each.spec.node_name) for each in slices if each.spec.node_name]
    if len(rows) < len(slices):
        return snapshot.all()  # devices of many nodes
    return snapshot.rows(sorted({row for row in rows if row is not None}))


def _pool_of(each: ResourceSlice) -> _Pool:
    return each.spec.driver, each.spec.pool.name


def _devices_of(claim: ResourceClaim) -> Sequence[DeviceRequestAllocationResult]:
    allocation = claim.status.allocation
    return () if allocation is None else allocation.devices.results


def _taints_text(slices: Iterable[ResourceSlice], rules: Iterable[DeviceTaintRule]) -> str:
    """Return the taints that keep pods off devices of some slices, with the rules; "" for none."""
    rules = sorted(rules, key=lambda rule: rule.name)
    texts = dict.fromkeys(text for each in slices for text in _taint_texts(each, rules))
    plural = "s" if len(texts) > 1 else ""
    return f"the taint{plural} {listed(texts)}" if texts else ""


def _taint_texts(slice_: ResourceSlice, rules: Iterable[DeviceTaintRule]) -> Iterator[str]:
    rules = [rule for rule in rules if concerns_slice(rule, slice_)]
    for device in slice_.spec.devices:
        for taint in device.taints:
            if taint.effect in SCHEDULING_EFFECTS:
                yield _taint_text(taint)
        for rule in rules:
            if rule.spec.taint.effect in SCHEDULING_EFFECTS and taints_device(rule, device):
                yield f"{_taint_text(rule.spec.taint)} (DeviceTaintRule {rule.name})"


def _taint_text(taint: DeviceTaint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


# --- claims that ask for less ---------------------------------------------------------------------

Change = Callable[[DeviceRequest], DeviceRequest]


def _asking(claim: ResourceClaim, change: Change) -> ResourceClaim:
    """Return a claim with each request changed, and without constraints over its devices."""
    asked = claim.spec.devices
    devices = msgspec.structs.replace(asked, requests=[change(each) for each in asked.requests])
    if change is _same:
        devices = msgspec.structs.replace(devices, constraints=[])
    return msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, devices=devices))


def _same(request: DeviceRequest) -> DeviceRequest:
    return request


def _without_selectors(request: DeviceRequest) -> DeviceRequest:
    return _replaced(request, selectors=[])


def _one_device(request: DeviceRequest) -> DeviceRequest:
    return _some_devices(1, request)


def _some_devices(count: int, request: DeviceRequest) -> DeviceRequest:
    return _replaced(request, count=count, allocation_mode="ExactCount")


def _replaced(request: DeviceRequest, **fields: object) -> DeviceRequest:
    """Return a request with fields of each of its alternatives replaced."""
    exactly, others = request.exactly, request.first_available
    return msgspec.structs.replace(
        request,
        exactly=None if exactly is None else msgspec.structs.replace(exactly, **fields),
        first_available=[msgspec.structs.replace(each, **fields) for each in others],
    )


_CHANGES: Final[tuple[tuple[Change, str], ...]] = (
    (_without_selectors, "whose selectors match no device of these nodes"),
    (_one_device, "which asks for more devices than these nodes offer"),
    (_same, "whose constraints no devices of these nodes meet"),
)
