"""Extended resources: nodes that do not offer them now, and classes of devices behind them.

A device plugin that has not started, or that reports broken devices, leaves the capacity and lowers
what is allocatable. That changes without a change of the pod or of the node's shape.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.devices import DeviceClass
from moorage.api.pod import Container, Pod
from moorage.api.quantity import parse_quantity
from moorage.api.requests import to_units
from moorage.engine.inquiry import BoolArray, Inquiry
from moorage.explain.parts import with_spec
from moorage.snapshot.shape import RESOURCES

_OF_CLASS: Final = "deviceclass.resource.kubernetes.io/"


def offering_too_little(inquiry: Inquiry, name: str, rows: NDArray[np.int64]) -> BoolArray:
    """Return bool, (rows,): where the capacity is enough and what is allocatable is not."""
    wanted = inquiry.attempt.pod.part(RESOURCES).value.filter.get(name, 0)
    found_n = np.zeros(len(rows), np.bool_)
    if "/" not in name:
        return found_n
    offers_n = inquiry.snapshot.allocatable(name)[rows]
    for place in np.flatnonzero(offers_n < wanted).tolist():
        capacity = inquiry.snapshot.node(int(rows[place])).status.capacity.get(name, 0)
        found_n[place] = to_units(name, parse_quantity(capacity)) >= wanted
    return found_n


def offers_may_come(inquiry: Inquiry) -> BoolArray:
    """Return bool, (nodes,): rows that lack nothing but what they have and do not offer now."""
    requested = inquiry.attempt.pod.part(RESOURCES).value.filter
    rows = np.arange(inquiry.snapshot.num_nodes)
    coming_n, lasting_n = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
    for name, wanted in requested.items():
        lacking_n = inquiry.snapshot.allocatable(name) < wanted
        if wanted and lacking_n.any():
            offering_n = offering_too_little(inquiry, name, rows)
            coming_n |= offering_n
            lasting_n |= lacking_n & ~offering_n
    return coming_n & ~lasting_n


def resources_of_classes(inquiry: Inquiry) -> dict[str, str]:
    """Return the extended resources of the pod behind which devices are, and their classes.

    Kubernetes v1.36 pkg/scheduler/framework/plugins/dynamicresources/extended: a class names its
    resource, and has one by its own name as well. Of two classes with one name the
    newer one counts.
    """
    classes = sorted(inquiry.snapshot.listers.device_classes.all(), key=_class_rank)
    names = {f"{_OF_CLASS}{each.name}": each.name for each in classes}
    names |= {
        each.spec.extended_resource_name: each.name
        for each in classes
        if each.spec.extended_resource_name
    }
    wanted = inquiry.attempt.pod.part(RESOURCES).value.filter
    return {name: names[name] for name, units in wanted.items() if units and name in names}


def _class_rank(each: DeviceClass) -> tuple[str, list[int]]:
    """Return the sort key of a class; the last of several counts: the newest, or the first name."""
    return each.metadata.creation_timestamp or "", [-ord(letter) for letter in each.name]


def with_only(pod: Pod, names: Iterable[str], wanted: Collection[str], *, count: int = 0) -> Pod:
    """Return a pod that requests only some of some resources, each so often; 0 for as often."""
    gone = {name for name in names if name not in wanted}

    def changed(requests: Mapping[str, str | int | float]) -> dict[str, str | int | float]:
        return {
            name: count if count and name in wanted else amount
            for name, amount in requests.items()
            if name not in gone
        }

    def fewer(container: Container) -> Container:
        resources = msgspec.structs.replace(
            container.resources,
            requests=changed(container.resources.requests),
            limits=changed(container.resources.limits),
        )
        return msgspec.structs.replace(container, resources=resources)

    spec = pod.spec
    return with_spec(
        pod,
        containers=[fewer(each) for each in spec.containers],
        init_containers=[fewer(each) for each in spec.init_containers],
    )
