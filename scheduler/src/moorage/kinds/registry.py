"""Every built-in kind.

A kind with behaviour has a module here, or shares one with its neighbours, with its rows in
``KINDS``. A kind without a row is served from the facts alone (`kept`).
"""

from __future__ import annotations

from dataclasses import replace

from moorage.api.resources import DEVICE_TAINT_RULES
from moorage.kinds.built_in import stored_resources
from moorage.kinds.cluster import (
    certificate_request,
    config,
    event,
    flow_control,
    lease,
    namespace,
    node,
    priority_class,
    rbac,
    runtime_class,
)
from moorage.kinds.devices import served as devices
from moorage.kinds.devices.taint_rules import DEVICE_TAINT_RULE
from moorage.kinds.kept import other_version, with_other_versions
from moorage.kinds.network import addresses, networking, service
from moorage.kinds.pod import kind as pod
from moorage.kinds.quotas import limit_range, resource_quota
from moorage.kinds.served import ServedKind
from moorage.kinds.volumes import classes as storage
from moorage.kinds.volumes import csi
from moorage.kinds.volumes import persistent_volumes as volumes
from moorage.kinds.workloads import apps as workloads
from moorage.kinds.workloads import (
    autoscaler,
    disruption_budget,
    jobs,
    pod_groups,
    pod_groups_of_1_37,
)

_MODULES = (
    addresses,
    autoscaler,
    certificate_request,
    config,
    csi,
    devices,
    disruption_budget,
    event,
    flow_control,
    jobs,
    lease,
    limit_range,
    namespace,
    networking,
    node,
    pod,
    pod_groups,
    priority_class,
    rbac,
    resource_quota,
    runtime_class,
    service,
    storage,
    volumes,
    workloads,
)
GROUPS: tuple[tuple[ServedKind, ...], ...] = tuple(module.KINDS for module in _MODULES)


def all_kinds(*more: ServedKind, of_1_37: bool = False) -> list[ServedKind]:
    """Every built-in kind, in the order of `moorage.kinds.built_in.stored_resources`.

    Parameters
    ----------
    more
        Kinds with behaviour that a room above knows; without them they follow from the facts.
    of_1_37
        Whether the versions of kinds are there that 1.37 has and 1.36 lacks, and in the place of
        those that 1.37 lacks.
    """
    own = {kind.resource: kind for group in (*GROUPS, more) for kind in group}
    kinds = with_other_versions(own, stored_resources())
    if not of_1_37:
        return kinds
    gone = {kind.resource for kind in pod_groups.KINDS}
    stored = [replace(kind, stored_only=kind.resource in gone) for kind in kinds]
    return [*_KINDS_OF_1_37, *stored]


# Objects stay stored in the version of 1.36, so that a data directory can go back to it.
_KINDS_OF_1_37 = (
    other_version(DEVICE_TAINT_RULES, DEVICE_TAINT_RULE, needs_version=True),
    *pod_groups_of_1_37.KINDS,
)
