"""The DeviceClass that provides an extended resource.

NodeResourcesFit leaves such resources to devices. DynamicResources allocates the devices.

Rules mirrored: kubernetes v1.36
``pkg/scheduler/framework/plugins/dynamicresources/extended/deviceclassresolver.go``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moorage.api.devices import DeviceClass
from moorage.api.names import is_extended_resource
from moorage.plugins.answers import memo_of
from moorage.snapshot.listers import Lister
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES, PodRequests

IMPLICIT_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""Prefix of the implicit resource names: prefix plus class name."""


class DeviceClassNames:
    """Map of extended resource names to the classes that provide them.

    Parameters
    ----------
    lister
        The lister of DeviceClasses.
    """

    __slots__ = ("_by_name", "_generation", "_lister")

    def __init__(self, lister: Lister[DeviceClass]) -> None:
        self._lister = lister
        self._by_name: dict[str, DeviceClass] = {}
        self._generation = 0

    def find(self, resource: str) -> DeviceClass | None:
        """Return the class that provides a resource; None for no class.

        Of several classes that name the resource the newest counts; of equally old classes the
        first by name.
        """
        lister = self._lister
        if lister.generation == 0:
            return None  # the usual case: no class exists
        if resource.startswith(IMPLICIT_CLASS_PREFIX):
            return lister.get(resource.removeprefix(IMPLICIT_CLASS_PREFIX))
        if lister.generation != self._generation:
            self._by_name = _by_name(lister.all())
            self._generation = lister.generation
        return self._by_name.get(resource)

    def backs(self, pod: PodInfo) -> bool:
        """Whether a pod requests a resource that a class provides."""
        if self._lister.generation == 0:
            return False
        asked = memo_of(pod.part(RESOURCES), _POSSIBLE_DEVICES, _possible_devices)
        return any(self.find(resource) is not None for resource in asked)


def may_be_devices(resource: str) -> bool:
    """Whether devices may provide a resource of this name."""
    return is_extended_resource(resource) or resource.startswith(IMPLICIT_CLASS_PREFIX)


_POSSIBLE_DEVICES: Final = "resources that may be devices"


def _possible_devices(requests: PodRequests) -> tuple[str, ...]:
    return tuple(
        name for name, amount in requests.filter.items() if amount and may_be_devices(name)
    )


def _by_name(classes: Iterable[DeviceClass]) -> dict[str, DeviceClass]:
    by_name: dict[str, DeviceClass] = {}
    for each in classes:
        resource = each.spec.extended_resource_name
        if resource is not None and _comes_first(each, by_name.get(resource)):
            by_name[resource] = each
    return by_name


def _comes_first(new: DeviceClass, known: DeviceClass | None) -> bool:
    if known is None:
        return True
    made = new.metadata.creation_timestamp or "", known.metadata.creation_timestamp or ""
    return made[0] > made[1] or (made[0] == made[1] and new.name < known.name)
