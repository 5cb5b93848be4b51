"""CSINode, CSIDriver and CSIStorageCapacity: the objects that CSI drivers publish.

Mirrors kubernetes v1.36 pkg/apis/storage/{v1/defaults.go,validation}.
"""

from __future__ import annotations

from moorage.api import resources
from moorage.api.names import dns_subdomain_faults, qualified_name_faults
from moorage.kinds.cells import AGE, NAME, NONE, UNSET, column, count, flag
from moorage.kinds.fields import (
    defaults,
    driver_name,
    duplicates,
    each,
    each_one_of,
    if_present,
    name_rule,
    one_of,
    rules,
    unchanging,
    within,
)
from moorage.kinds.kind import FieldError, Obj, duplicate, invalid, required
from moorage.kinds.metadata import immutable
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, child, items, objects, strings, text
from moorage.kinds.values.quantities import NOT_NEGATIVE, check_quantity
from moorage.kinds.values.selectors import check_label_selector
from moorage.kinds.values.warnings import of_expressions, of_labels

_NODE_ID_LENGTH_MAX = 192
_TOKEN_SECONDS_MIN, _TOKEN_SECONDS_MAX = 600, 2**32


def _node_id(name: str | None, where: str) -> list[FieldError]:
    if not name:
        return [required(where)]
    detail = f"must be {_NODE_ID_LENGTH_MAX} characters or less"
    return [invalid(where, name, detail)] if len(name.encode()) > _NODE_ID_LENGTH_MAX else []


def _topology_keys(driver: Json, where: str) -> list[FieldError]:
    errors, keys = [], set[str]()
    for key in strings(driver, "topologyKeys"):
        if not key:
            errors.append(required(where))
        if key in keys:
            errors.append(duplicate(where, key))
        keys.add(key)
        errors += [invalid(where, key, fault) for fault in qualified_name_faults(key)]
    return errors


_driver = rules(
    ("nodeID", _node_id), ("allocatable.count", within(0, None, NOT_NEGATIVE)), _topology_keys
)


def _drivers_change(new: Obj, old: Obj) -> list[FieldError]:
    """Refuse a change of a driver; only the number of its volumes may change."""
    before = {text(each, "name"): each for each in objects(old, "spec", "drivers")}
    return [
        immutable("spec.drivers", each)
        for each in objects(new, "spec", "drivers")
        if (was := before.get(text(each, "name"))) and _fixed(each) != _fixed(was)
    ]


def _fixed(driver: Json) -> Json:
    return {key: value for key, value in driver.items() if key != "allocatable" and value}


def _audience(request: Json, where: str) -> list[FieldError]:
    seconds, field = request.get("expirationSeconds"), f"{where}.expirationSeconds"
    if seconds is None:
        return []
    if seconds < _TOKEN_SECONDS_MIN:
        return [invalid(field, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _TOKEN_SECONDS_MAX:
        return [invalid(field, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []


def _audiences_differ(requests: list[Json] | None, where: str) -> list[FieldError]:
    audiences = [text(each, "audience") for each in requests or ()]
    return duplicates(audiences, lambda place: f"{where}[{place}].audience")


def _audiences(obj: Obj) -> str:
    found = objects(obj, "spec", "tokenRequests")
    return ",".join(text(each, "audience") for each in found) if found else UNSET


def _modes(obj: Obj) -> str:
    return ",".join(str(mode) for mode in items(obj, "spec", "volumeLifecycleModes"))


def _attaches(obj: Obj) -> bool:
    return child(obj, "spec").get("attachRequired") is not False


def _warn_of_capacity(obj: Obj) -> list[str]:
    topology = child(obj, "nodeTopology")
    keys = [(f"nodeTopology.matchLabels.{key}", key) for key in child(topology, "matchLabels")]
    return of_expressions(topology, "nodeTopology") + of_labels(keys, with_name=False)


CSI_NODE = ServedKind(
    resource=resources.CSI_NODES,
    needs_version=True,
    acted_on_by="the scheduler",
    columns=(
        NAME,
        count("Drivers", lambda obj: len(objects(obj, "spec", "drivers")), "Drivers on the node"),
        AGE,
    ),
    defaults=defaults(unset={"spec.drivers": []}),
    rules=rules(("spec.drivers", each(_driver, unique="name", key=driver_name))),
    change=_drivers_change,
)


def _driver_faults(name: str) -> list[str]:
    """Return what is wrong with the name of a driver, which may have capital letters."""
    return [error.detail for error in driver_name(name, "metadata.name")]


def _csi_driver_change(new: Obj, old: Obj) -> list[FieldError]:
    errors = unchanging("spec.volumeLifecycleModes")(new, old)
    after = child(new, "spec").get("attachRequired")
    if after != child(old, "spec").get("attachRequired"):
        # The path is upstream's.
        errors.append(immutable("spec.attachedRequired", after))
    return errors


CSI_DRIVER = ServedKind(
    resource=resources.CSI_DRIVERS,
    name_rule=_driver_faults,
    needs_version=True,
    acted_on_by="the scheduler",
    columns=(
        NAME,
        flag("AttachRequired", _attaches, "Volumes have to be attached"),
        flag("PodInfoOnMount", "spec.podInfoOnMount", "The driver is told about the pod"),
        flag("StorageCapacity", "spec.storageCapacity", "The driver publishes capacities"),
        column("TokenRequests", _audiences, "Audiences of the tokens it asks for"),
        flag(
            "RequiresRepublish", "spec.requiresRepublish", "Volumes are published again and again"
        ),
        column("Modes", _modes, "Kinds of volumes the driver serves", empty=NONE),
        AGE,
    ),
    defaults=defaults(
        unset={
            "spec.attachRequired": True,
            "spec.podInfoOnMount": False,
            "spec.storageCapacity": False,
            "spec.fsGroupPolicy": "ReadWriteOnceWithFSType",
            "spec.requiresRepublish": False,
            "spec.seLinuxMount": False,
        },
        empty={"spec.volumeLifecycleModes": ["Persistent"]},
    ),
    rules=rules(
        ("spec.fsGroupPolicy", one_of("File", "None", "ReadWriteOnceWithFSType")),
        ("spec.tokenRequests", each(_audience)),
        ("spec.tokenRequests", _audiences_differ),
        ("spec.volumeLifecycleModes", each_one_of("Ephemeral", "Persistent")),
        (
            "spec.nodeAllocatableUpdatePeriodSeconds",
            if_present(within(10, None, "must be greater than or equal to 10 seconds")),
        ),
    ),
    change=_csi_driver_change,
)
CSI_STORAGE_CAPACITY = ServedKind(
    resource=resources.CSI_STORAGE_CAPACITIES,
    needs_version=True,
    acted_on_by="the scheduler",
    columns=(
        NAME,
        column("StorageClassName", "storageClassName", "Storage class the capacity is for"),
        column("Capacity", "capacity", "Space that is left", empty=UNSET),
    ),
    rules=rules(
        ("nodeTopology", check_label_selector),
        ("storageClassName", name_rule(dns_subdomain_faults, empty="refused")),
        ("capacity", if_present(check_quantity)),
    ),
    change=unchanging("nodeTopology storageClassName"),
    warn=_warn_of_capacity,
)
KINDS = (CSI_NODE, CSI_DRIVER, CSI_STORAGE_CAPACITY)
