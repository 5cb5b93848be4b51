"""The addresses of services: IPAddress objects follow the services, ranges wait for both.

Place in the flow: `world` reports every write to a service, an IPAddress or a ServiceCIDR. A
service is the source of truth about its own addresses: the objects are made and removed with the
service, in the same turn. A new service looks at the objects alone (`kinds.network.addresses`),
because a client may have taken an address with an object of its own.

Upstream, controllers repair the objects and protect the ranges (kubernetes v1.36
pkg/registry/core/service/ipallocator/controller/repairip.go and pkg/controller/servicecidrs). Here
the server does, at once.
"""

from __future__ import annotations

import ipaddress

from moorage.api.resources import SERVICES
from moorage.base.clock import rfc3339
from moorage.kinds.kind import Obj
from moorage.kinds.network.addresses import (
    IP_ADDRESSES,
    PROTECTION,
    SERVICE_CIDRS,
    asked_addresses,
    network_of,
    say_readiness,
)
from moorage.kinds.tree import child, put_finalizer, strings, text
from moorage_sandbox.apiserver.catalog import Served, Target
from moorage_sandbox.apiserver.verbs.deleting import DeleteOptions, Deleter
from moorage_sandbox.apiserver.verbs.metadata import stamp_new
from moorage_sandbox.apiserver.world import World
from moorage_sandbox.storage.record import Record
from moorage_sandbox.storage.store import Key

_FAMILY = "ipaddress.kubernetes.io/ip-family"
_MANAGED = {"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}


class ServiceAddresses:
    """Keeps an IPAddress for each address of a service, and the ranges while they are in use.

    Parameters
    ----------
    world
        Holds the objects.
    deleter
        Deletes the IPAddress of an address that a service has no more.
    """

    def __init__(self, world: World, deleter: Deleter) -> None:
        self._world = world
        self._deleter = deleter
        self._addresses = world.catalog.by_plural(IP_ADDRESSES.plural)
        self._ranges = world.catalog.by_plural(SERVICE_CIDRS.plural)
        world.on_write(SERVICES.qualified, self._service_written)
        world.on_write(self._addresses.shelf, self._address_written)
        world.on_write(self._ranges.shelf, self._range_written)

    def load(self) -> None:
        """Make the objects that a restored store lacks, and remove those without a service."""
        for record in list(self._world.shelf(SERVICES.plural).records()):
            for address in _addresses_of(record):
                self._take_address(address, record.key)
        for record in list(self._world.store.shelf(self._addresses.shelf).records()):
            obj = record.decode()
            if _is_managed(obj) and not self._is_held(obj):
                self._release(record.name)
        for record in list(self._world.store.shelf(self._ranges.shelf).records()):
            self._range_written(self._ranges, None, record)

    # --- addresses --------------------------------------------------------------------------

    def _service_written(self, served: Served, before: Record | None, after: Record | None) -> None:
        had, has = _addresses_of(before), _addresses_of(after)
        for address in had:
            if address not in has:
                found = self._world.lookup(IP_ADDRESSES.plural, None, address)
                # Another service may have the address, where both were loaded from a snapshot.
                if found is not None and not self._is_held(found):
                    self._release(address)
        for address in has:
            if address not in had and after is not None:
                self._take_address(address, after.key)

    def _take_address(self, address: str, service: Key) -> None:
        """Store the IPAddress of a service's address, unless there is one."""
        if self._world.store.shelf(self._addresses.shelf).get(("", address)) is not None:
            return
        namespace, name = service
        family = f"IPv{ipaddress.ip_address(address).version}"
        obj: Obj = {
            "apiVersion": IP_ADDRESSES.api_version,
            "kind": IP_ADDRESSES.kind,
            "metadata": {"name": address, "generation": 1, "labels": {_FAMILY: family, **_MANAGED}},
            "spec": {
                "parentRef": {"name": name, "namespace": namespace, "resource": SERVICES.plural}
            },
        }
        stamp_new(obj, self._world.clock, self._world.rng)
        self._world.store_form(self._addresses, obj)

    def _release(self, address: str) -> None:
        self._deleter.delete_object(Target(served=self._addresses, name=address), DeleteOptions())

    def _is_held(self, address: Obj) -> bool:
        """Whether the service that an IPAddress names has the address."""
        parent = child(address, "spec", "parentRef")
        if (text(parent, "group"), text(parent, "resource")) != ("", SERVICES.plural):
            return False
        key = (text(parent, "namespace"), text(parent, "name"))
        service = self._world.shelf(SERVICES.plural).get(key)
        return text(address, "metadata", "name") in _addresses_of(service)

    def _address_written(self, served: Served, before: Record | None, after: Record | None) -> None:
        if after is not None or before is None:
            return
        obj = before.decode()
        if self._is_held(obj):
            parent = child(obj, "spec", "parentRef")
            self._take_address(before.name, (text(parent, "namespace"), text(parent, "name")))
        self._settle_ranges()

    # --- ranges -----------------------------------------------------------------------------

    def _range_written(self, served: Served, before: Record | None, after: Record | None) -> None:
        if after is not None:
            obj = after.decode()
            if not obj["metadata"].get("deletionTimestamp") and put_finalizer(obj, PROTECTION):
                say_readiness(obj, rfc3339(self._world.clock.now_ns()), ready=True)
                self._world.store_form(self._ranges, obj)
        self._settle_ranges()

    def _settle_ranges(self) -> None:
        """Let go the ranges that are being deleted and not in use; the others say so."""
        for service_cidr in list(self._world.stored_objects(SERVICE_CIDRS.plural)):
            if not service_cidr["metadata"].get("deletionTimestamp"):
                continue
            record = self._world.store.shelf(self._ranges.shelf).get(
                ("", service_cidr["metadata"]["name"])
            )
            if record is None or PROTECTION not in record.decode()["metadata"]["finalizers"]:
                continue
            if self._in_use(service_cidr):
                self._tell_terminating(record)
            else:
                self._let_go(record)

    def _tell_terminating(self, record: Record) -> None:
        obj = record.decode()
        before = obj.get("status")
        say_readiness(obj, rfc3339(self._world.clock.now_ns()), ready=False)
        if obj["status"] != before:
            self._world.store_form(self._ranges, obj)

    def _let_go(self, record: Record) -> None:
        obj = record.decode()
        meta = obj["metadata"]
        meta["finalizers"] = [each for each in meta["finalizers"] if each != PROTECTION]
        if meta["finalizers"]:
            self._world.store_form(self._ranges, obj)
        else:
            del meta["finalizers"]
            self._world.remove(self._ranges, record.key, obj)

    def _in_use(self, leaving: Obj) -> bool:
        """Whether a service has an address that no range would hold without this range."""
        own = [network_of(each) for each in strings(leaving, "spec", "cidrs")]
        others = [
            network_of(cidr)
            for each in self._world.stored_objects(SERVICE_CIDRS.plural)
            if not each["metadata"].get("deletionTimestamp")
            for cidr in strings(each, "spec", "cidrs")
        ]
        for each in self._world.stored_objects(IP_ADDRESSES.plural):
            if _is_managed(each):
                address = ipaddress.ip_address(each["metadata"]["name"])
                if any(address in one for one in own) and not any(address in one for one in others):
                    return True
        return False


def _addresses_of(service: Record | None) -> list[str]:
    """Return the addresses of a service in canonical form; none where there is no service."""
    if service is None:
        return []
    return [str(ipaddress.ip_address(each)) for each in asked_addresses(service.decode()["spec"])]


def _is_managed(address: Obj) -> bool:
    return child(address, "metadata", "labels").items() >= _MANAGED.items()
