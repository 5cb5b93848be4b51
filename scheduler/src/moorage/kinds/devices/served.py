"""The kinds of ``resource.k8s.io``, for dynamic resource allocation.

`slices` has the resource slices, `taint_rules` the DeviceTaintRules. Mirrors kubernetes v1.36
pkg/apis/resource/validation and pkg/registry/resource.
"""

from __future__ import annotations

from moorage.api import resources
from moorage.api.names import dns_subdomain_faults, is_extended_resource
from moorage.api.resources import ResourceType
from moorage.kinds import status
from moorage.kinds.cells import AGE, NAME, column, name_of
from moorage.kinds.devices.claim_status import check_claim_status
from moorage.kinds.devices.claims import (
    LIST_MAX,
    check_configurations,
    check_constraints,
    class_configurations,
)
from moorage.kinds.devices.selectors import check_selector, check_total_length
from moorage.kinds.devices.shared_rules import (
    by_name,
    check_changed_spec,
    check_toleration,
    device_name,
    either,
    members,
)
from moorage.kinds.devices.slices import RESOURCE_SLICE
from moorage.kinds.devices.taint_rules import DEVICE_TAINT_RULE
from moorage.kinds.fields import name_rule, one_of, rules, unchanging, within
from moorage.kinds.kind import Context, FieldError, Obj, forbidden, invalid, required
from moorage.kinds.metadata import check_template_metadata
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, child, fill_empty, number, objects, text
from moorage.kinds.values.quantities import NOT_ZERO

ADMIN_ACCESS = "resource.kubernetes.io/admin-access"
"""Label of the namespaces whose claims may ask for administrative access."""
_NO_ADMIN = (
    f"admin access to devices requires the `{ADMIN_ACCESS}: true` label on the containing namespace"
)


def _default_requests(spec: Json) -> None:
    for request in objects(spec, "devices", "requests"):
        given = [request["exactly"]] if request.get("exactly") is not None else []
        for wanted in (*given, *objects(request, "firstAvailable")):
            fill_empty(wanted, {"allocationMode": "ExactCount"})
            if wanted["allocationMode"] == "ExactCount" and not wanted.get("count"):
                wanted["count"] = 1
            for toleration in objects(wanted, "tolerations"):
                fill_empty(toleration, {"operator": "Equal"})


def _count(wanted: Json, where: str) -> list[FieldError]:
    mode, found, field = text(wanted, "allocationMode"), number(wanted, "count"), f"{where}.count"
    if mode == "All" and found:
        return [invalid(field, found, "must not be specified when allocationMode is 'All'")]
    return within(1, None, NOT_ZERO)(found, field) if mode == "ExactCount" else []


def _expression(selector: Json, where: str) -> list[FieldError]:
    if selector.get("cel") is None:
        return [required(f"{where}.cel")]
    return check_selector(text(selector, "cel", "expression"), f"{where}.cel.expression")


def _expressions(spec: Json | None, where: str) -> list[FieldError]:
    """Limit the length of all selectors of a class or claim."""
    spec = spec or {}
    requests = objects(spec, "devices", "requests")
    wanted = [child(request, "exactly") for request in requests]
    wanted += [each for request in requests for each in objects(request, "firstAvailable")]
    expressions = [
        text(selector, "cel", "expression")
        for holder in (spec, *wanted)
        for selector in objects(holder, "selectors")
    ]
    return check_total_length(expressions, where)


_selectors = rules(("selectors", members(_expression, LIST_MAX)))
_wanted = rules(
    ("deviceClassName", name_rule(dns_subdomain_faults, empty="required")),
    _selectors,
    ("allocationMode", one_of("All", "ExactCount")),
    _count,
    ("tolerations", members(check_toleration, 16)),
)
_alternative = rules(("name", device_name), _wanted)
_alternatives = rules(("firstAvailable", members(_alternative, 8, by_name)))


def _request(request: Json, field: str) -> list[FieldError]:
    errors = device_name(request.get("name"), f"{field}.name")
    exactly, alternatives = request.get("exactly"), objects(request, "firstAvailable")
    one_way = "exactly one of `exactly` or `firstAvailable` is required"
    if exactly is None and not alternatives:
        return [*errors, required(field, one_way)]
    if exactly is not None and alternatives:
        return [*errors, invalid(field, None, f"{one_way}, but multiple fields are set")]
    if exactly is None:
        return errors + _alternatives(request, field)
    return errors + _wanted(exactly, f"{field}.exactly")


_devices = rules(
    ("requests", members(_request, LIST_MAX, by_name)),
    check_constraints,
    check_configurations,
)
_claim = either(_expressions, rules(("devices", _devices)))


def _extended_resource(name: str | None, where: str) -> list[FieldError]:
    if name is None or is_extended_resource(name):
        return []
    return [invalid(where, name, "must be a valid extended resource name")]


def _check_admin(obj: Obj, spec: Json, ctx: Context, resource: ResourceType) -> None:
    """Refuse administrative access to devices in a namespace without the label.

    Raises
    ------
    moorage.kinds.status.StatusError
        422.

    Notes
    -----
    kubernetes v1.36 pkg/registry/resource/resourceutils, AuthorizedForAdmin; the path of a
    template is that of a claim there, too.
    """
    for index, request in enumerate(objects(spec, "devices", "requests")):
        if child(request, "exactly").get("adminAccess") is True:
            field = f"spec.devices.requests[{index}].adminAccess"
            _check_label(obj, field, ctx, resource)
            return


def _check_label(obj: Obj, field: str, ctx: Context, resource: ResourceType) -> None:
    namespace = ctx.lookup("namespaces", None, text(obj, "metadata", "namespace"))
    if child(namespace or {}, "metadata", "labels").get(ADMIN_ACCESS) != "true":
        raise status.invalid(resource, name_of(obj), [forbidden(field, _NO_ADMIN)])


def _check_admin_of_status(new: Obj, old: Obj, ctx: Context) -> None:
    """Refuse an allocation with administrative access in a namespace without the label."""
    path = ("status", "allocation", "devices", "results")
    if any(each.get("adminAccess") is True for each in objects(old, *path)):
        return
    for index, each in enumerate(objects(new, *path)):
        if each.get("adminAccess") is True:
            field = f"{'.'.join(path)}[{index}].adminAccess"
            _check_label(new, field, ctx, resources.RESOURCE_CLAIMS)
            return


def _state(obj: Obj) -> str:
    deleted, status = text(obj, "metadata", "deletionTimestamp"), child(obj, "status")
    states = ["deleted"] if deleted else []
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if objects(status, "reservedFor") else ["allocated"]
    elif not deleted:
        states.append("pending")
    return ",".join(states)


KINDS = (
    ServedKind(
        resource=resources.DEVICE_CLASSES,
        acted_on_by="the scheduler",
        columns=(NAME, AGE),
        counts_generations=True,
        check=check_changed_spec(
            rules(
                ("spec", either(_expressions, _selectors)),
                ("spec.config", class_configurations),
                ("spec.extendedResourceName", _extended_resource),
            )
        ),
    ),
    RESOURCE_SLICE,
    DEVICE_TAINT_RULE,
    ServedKind(
        resource=resources.RESOURCE_CLAIMS,
        acted_on_by="the scheduler, the claim controller",
        columns=(
            NAME,
            column("State", _state, "Whether it is pending, allocated, reserved, deleted"),
            AGE,
        ),
        defaults=lambda obj: _default_requests(child(obj, "spec")),
        on_create=lambda obj, ctx, resource: _check_admin(obj, child(obj, "spec"), ctx, resource),
        settle=_check_admin_of_status,
        open_status=(),
        check=check_changed_spec(rules(("spec", _claim))),
        change=unchanging("spec"),
        check_status=check_claim_status,
    ),
    ServedKind(
        resource=resources.RESOURCE_CLAIM_TEMPLATES,
        acted_on_by="the claim controller",
        columns=(NAME, AGE),
        defaults=lambda obj: _default_requests(child(obj, "spec", "spec")),
        on_create=lambda obj, ctx, resource: _check_admin(
            obj, child(obj, "spec", "spec"), ctx, resource
        ),
        check=check_changed_spec(
            rules(("spec.metadata", check_template_metadata), ("spec.spec", _claim))
        ),
        change=unchanging("spec"),
    ),
)
