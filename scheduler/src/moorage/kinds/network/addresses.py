"""IPAddress and ServiceCIDR: the addresses of services, and the ranges that they come from.

An address is taken while an IPAddress object has its name.
`moorage_sandbox.apiserver.admission.addresses` keeps one for each address of a service; clients may
create others, for addresses that services must not get.

Mirrors kubernetes v1.36 pkg/apis/networking/validation, pkg/registry/core/service/ipallocator and
pkg/controller/servicecidrs.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeAlias

from moorage.api.resources import ResourceType
from moorage.base.clock import rfc3339
from moorage.base.rng import from_random
from moorage.kinds import status
from moorage.kinds.built_in import resource_type
from moorage.kinds.cells import AGE, NAME, NONE, column
from moorage.kinds.fields import if_present, needed, rules, unchanging
from moorage.kinds.kind import Context, FieldError, Obj, invalid, required
from moorage.kinds.network.service_rules import HEADLESS
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import (
    Json,
    child,
    objects,
    put_condition,
    put_finalizer,
    strings,
    text,
)
from moorage.kinds.values.addresses import NO_ADDRESS, NO_NETWORK

DEFAULT_SERVICE_CIDR = "kubernetes"
"""Name of the range that every cluster has."""
SERVICE_NETWORK = "10.96.0.0/16"
"""The range of that name; a cluster made by kubeadm has a wider one."""
FIRST_ADDRESS = "10.96.0.1"
"""The address of the service ``kubernetes``."""
PROTECTION = "networking.k8s.io/service-cidr-finalizer"
"""The finalizer of a range until no service has an address of it."""
IP_ADDRESSES = resource_type("networking.k8s.io/v1", "ipaddresses")
SERVICE_CIDRS = resource_type("networking.k8s.io/v1", "servicecidrs")

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_IMMUTABLE = "field is immutable"
_READY = ("True", "", "Kubernetes Service CIDR is ready")
_TERMINATING = (
    "False",
    "Terminating",
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new "
    "ServiceCIDR",
)
# The low addresses of a range are for services that ask for one: a sixteenth of the range, within
# these bounds (calculateRangeOffset).
_ASKED_FOR_MIN, _ASKED_FOR_MAX = 16, 256

# A few ranges are read for every service.
network_of = lru_cache(maxsize=64)(ipaddress.ip_network)


# -- addresses -------------------------------------------------------------------------------------


def free_address(ctx: Context) -> str:
    """Return an address that no IPAddress object has, from the high part of a range if possible.

    Raises
    ------
    StatusError
        500: every address is taken.
    """
    for network in _networks(ctx):
        for part in _parts(network):
            for place in from_random(part, ctx.rng):
                address = str(network[place])
                if ctx.lookup(IP_ADDRESSES.plural, None, address) is None:
                    return address
    raise status.internal("failed to allocate a serviceIP: range is full")


def _parts(network: Network) -> Iterator[range]:
    """Yield the places of a range for new services: the high part, then the low part.

    The first and the last place are the addresses of the network itself. Services of this cluster
    have addresses of IPv4 unless they ask for others.
    """
    if network.version != 4:
        return
    size = network.num_addresses
    low = min(max(size // 16, _ASKED_FOR_MIN), _ASKED_FOR_MAX) if size > _ASKED_FOR_MIN else 0
    for part in (range(1 + low, size - 1), range(1, min(1 + low, size - 1))):
        if part:
            yield part


def _networks(ctx: Context) -> list[Network]:
    """Return the ranges of new addresses; the default range is one unless it is being deleted."""
    stored = {
        text(each, "metadata", "name"): each for each in ctx.stored_objects(SERVICE_CIDRS.plural)
    }
    default = stored.pop(DEFAULT_SERVICE_CIDR, {"spec": {"cidrs": [SERVICE_NETWORK]}})
    return [
        network_of(cidr)
        for each in (default, *stored.values())
        if not child(each, "metadata").get("deletionTimestamp")
        for cidr in strings(each, "spec", "cidrs")
    ]


def asked_addresses(spec: Json) -> list[str]:
    """Return the addresses that a service has or asks for; none of a headless service."""
    if text(spec, "type") == "ExternalName":
        return []
    found = strings(spec, "clusterIPs") or [text(spec, "clusterIP")]
    return [each for each in found if each not in ("", HEADLESS)]


def address_faults(spec: Json) -> list[FieldError]:
    """Refuse addresses of a service that are none, or that contradict each other."""
    first, listed = text(spec, "clusterIP"), strings(spec, "clusterIPs")
    field = "spec.clusterIPs"
    if listed and not first:
        return [invalid(field, listed, "must be empty when `clusterIP` is not specified")]
    if listed and listed[0] != first:
        return [invalid(field, listed, "first value must match `clusterIP`")]
    errors = []
    for index, each in enumerate(listed or [first]):
        if each in ("", HEADLESS) and not index:
            continue
        try:
            ipaddress.ip_address(each)
        except ValueError:
            errors.append(invalid(f"{field}[{index}]", each, NO_ADDRESS))
    return errors


def refused_addresses(spec: Json, ctx: Context) -> list[FieldError]:
    """Refuse addresses that a new service asks for and cannot have.

    Notes
    -----
    kubernetes v1.36 pkg/registry/core/service/storage/alloc.go, allocIPs.
    """
    if errors := address_faults(spec):
        return errors
    asked = asked_addresses(spec)
    found = ((each, _refusal(each, ctx)) for each in asked)
    return [
        invalid("spec.clusterIPs", asked, f"failed to allocate IP {each}: {why}")
        for each, why in found
        if why
    ]


def _refusal(written: str, ctx: Context) -> str:
    """Return why a new service cannot have an address; empty where it can."""
    address = ipaddress.ip_address(written)
    holding = [each for each in _networks(ctx) if address in each]
    if not holding:
        return "the provided network does not match the current range"
    ends = {holding[0][0], holding[0][-1]} if address.version == 4 else {holding[0][0]}
    if address in ends:
        return f"provided IP {address} is not in the valid range"
    if ctx.lookup(IP_ADDRESSES.plural, None, str(address)) is not None:
        return "provided IP is already allocated"
    return ""


def _canonical_address(name: str) -> list[str]:
    try:
        found = str(ipaddress.ip_address(name))
    except ValueError:
        return [NO_ADDRESS]
    return [] if found == name else [f'must be in canonical form ("{found}")']


def _parent(obj: Obj) -> str:
    parent = child(obj, "spec", "parentRef")
    resource = ".".join(filter(None, (text(parent, "resource"), text(parent, "group"))))
    return "/".join(filter(None, (resource, text(parent, "namespace"), text(parent, "name"))))


# -- ranges ----------------------------------------------------------------------------------------


def say_readiness(obj: Json, now: str, *, ready: bool) -> None:
    """Write into the condition of a range whether services get addresses of it, in place."""
    told, reason, message = _READY if ready else _TERMINATING
    before = child(obj, "status")
    status = {**before, "conditions": [dict(each) for each in objects(before, "conditions")]}
    condition = {"type": "Ready", "status": told, "reason": reason, "message": message}
    put_condition(status, condition, now)
    obj["status"] = status


def _prepare_range(obj: Json, ctx: Context, resource: ResourceType) -> None:
    """Set at once what upstream's controller sets soon after."""
    put_finalizer(obj, PROTECTION)
    say_readiness(obj, rfc3339(ctx.clock.now_ns()), ready=True)


def _cidr(value: Any, where: str) -> list[FieldError]:
    try:
        network_of(value)
    except ValueError:
        return [invalid(where, value, NO_NETWORK)]
    return []


def _cidr_list(cidrs: Any, where: str) -> list[FieldError]:
    if not cidrs:
        return [required(where, "at least one CIDR required")]
    return [error for index, each in enumerate(cidrs) for error in _cidr(each, f"{where}[{index}]")]


def _range_change(new: Obj, old: Obj) -> list[FieldError]:
    """Refuse changes of a range, besides adding the other family of addresses."""
    before, after = strings(old, "spec", "cidrs"), strings(new, "spec", "cidrs")
    field, pair = "spec.cidrs", 2
    if len(before) != len(after) and (len(before), len(after)) != (1, pair):
        return [invalid(field, after, _IMMUTABLE)]
    return [
        invalid(f"{field}[{index}]", after[0], _IMMUTABLE)
        for index, each in enumerate(before)
        if each != after[index]
    ]


def _cidrs(obj: Obj) -> str:
    return ",".join(strings(obj, "spec", "cidrs"))


KINDS = (
    ServedKind(
        resource=IP_ADDRESSES,
        acted_on_by="the server, which gives addresses to services",
        columns=(NAME, column("ParentRef", _parent, "What has the address", empty=NONE)),
        name_rule=_canonical_address,
        counts_generations=True,
        rules=rules(
            ("spec.parentRef", needed()),
            ("spec.parentRef", if_present(rules(("resource name", needed())))),
        ),
        change=unchanging("spec.parentRef"),
    ),
    ServedKind(
        resource=SERVICE_CIDRS,
        acted_on_by="the server, which gives addresses to services",
        columns=(NAME, column("CIDRs", _cidrs, "The ranges of addresses"), AGE),
        on_create=_prepare_range,
        counts_generations=True,
        open_status=(),
        rules=rules(("spec.cidrs", _cidr_list)),
        change=_range_change,
    ),
)
