"""The kinds of ``networking.k8s.io`` and ``discovery.k8s.io``: stored, but nothing is routed.

Place in the flow: two tables of `moorage.apiserver.kinds.registry`. Columns as in kubernetes v1.36
pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from typing import Any

from moorage.api import resources
from moorage.apiserver.kind import Column
from moorage.apiserver.kinds import check_networking
from moorage.apiserver.kinds.cells import AGE, NAME, NONE, UNSET, age, format_selector, name_of
from moorage.apiserver.kinds.served import ServedKind
from moorage.apiserver.kinds.tree import Json, child, items, objects, text

# Up to this number Endpoints are listed; more are counted.
_SHOWN_MAX = 3

_INGRESS_COLUMNS = (
    NAME,
    Column("Class", description="Class of the controller that should serve it"),
    Column("Hosts", description="Hosts it has rules for"),
    Column("Address", description="Where it can be reached"),
    Column("Ports", description="Ports it listens on"),
    AGE,
)


def _ingress_cells(obj: Json, now_ns: int) -> list[Any]:
    hosts = [host for rule in objects(obj, "spec", "rules") if (host := text(rule, "host"))]
    shown = ",".join(hosts[:_SHOWN_MAX]) or "*"
    if len(hosts) > _SHOWN_MAX:
        shown += f" + {len(hosts) - _SHOWN_MAX} more..."
    points = objects(obj, "status", "loadBalancer", "ingress")
    return [
        name_of(obj),
        text(obj, "spec", "ingressClassName") or NONE,
        shown,
        ",".join(text(point, "ip") or text(point, "hostname") for point in points),
        "80, 443" if objects(obj, "spec", "tls") else "80",
        age(obj, now_ns),
    ]


_CLASS_COLUMNS = (
    NAME,
    Column("Controller", description="Who serves ingresses of this class"),
    Column("Parameters", description="Where the controller finds its parameters"),
    AGE,
)


def _class_cells(obj: Json, now_ns: int) -> list[Any]:
    parameters = child(obj, "spec", "parameters")
    kind, name, group = (text(parameters, key) for key in ("kind", "name", "apiGroup"))
    shown = f"{kind}.{group}/{name}" if group else f"{kind}/{name}"
    controller = text(obj, "spec", "controller")
    return [name_of(obj), controller, shown if parameters else NONE, age(obj, now_ns)]


_POLICY_COLUMNS = (NAME, Column("Pod-Selector", description="Pods it is about"), AGE)


def _policy_cells(obj: Json, now_ns: int) -> list[Any]:
    return [name_of(obj), format_selector(child(obj, "spec", "podSelector")), age(obj, now_ns)]


_SLICE_COLUMNS = (
    NAME,
    Column("AddressType", description="Kind of its addresses"),
    Column("Ports", description="Ports of its endpoints"),
    Column("Endpoints", description="Addresses of its endpoints"),
    AGE,
)


def _slice_cells(obj: Json, now_ns: int) -> list[Any]:
    ports = [port.get("port") for port in objects(obj, "ports")]
    found = [str(each) for point in objects(obj, "endpoints") for each in items(point, "addresses")]
    return [
        name_of(obj),
        text(obj, "addressType"),
        ",".join("*" if port is None else str(port) for port in ports) or UNSET,
        more(found) or UNSET,
        age(obj, now_ns),
    ]


def more(found: list[str]) -> str:
    """Return the first few texts, and the number of the others."""
    shown = ",".join(found[:_SHOWN_MAX])
    left = len(found) - _SHOWN_MAX
    return f"{shown} + {left} more..." if left > 0 else shown


ENDPOINTS_COLUMNS = (NAME, Column("Endpoints", description="Addresses and ports"), AGE)


def endpoints_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of the row of an Endpoints object."""
    found = []
    for subset in objects(obj, "subsets"):
        ports = [port.get("port") for port in objects(subset, "ports")]
        for address in objects(subset, "addresses"):
            ip = text(address, "ip")
            found += [f"{ip}:{port}" for port in ports] if ports else [ip]
    return [name_of(obj), more(found) or NONE, age(obj, now_ns)]


KINDS = (
    ServedKind(
        resource=resources.INGRESSES,
        columns=_INGRESS_COLUMNS,
        cells=_ingress_cells,
        defaults=check_networking.default_ingress,
        has_status=True,
        counts_generations=True,
        check=check_networking.check_ingress,
    ),
    ServedKind(
        resource=resources.INGRESS_CLASSES,
        columns=_CLASS_COLUMNS,
        cells=_class_cells,
        defaults=check_networking.default_ingress_class,
        counts_generations=True,
        check=check_networking.check_ingress_class,
    ),
    ServedKind(
        resource=resources.NETWORK_POLICIES,
        columns=_POLICY_COLUMNS,
        cells=_policy_cells,
        defaults=check_networking.default_network_policy,
        counts_generations=True,
        check=check_networking.check_network_policy,
    ),
    ServedKind(
        resource=resources.ENDPOINT_SLICES,
        columns=_SLICE_COLUMNS,
        cells=_slice_cells,
        defaults=check_networking.default_endpoint_slice,
        counts_generations=True,
        check=check_networking.check_endpoint_slice,
    ),
)
