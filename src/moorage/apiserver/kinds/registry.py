"""Every served kind.

A kind with behaviour has a module here, or shares one with its neighbours, with its rows in
``KINDS``. A kind without a row is served from the facts alone (`kept`).
"""

from __future__ import annotations

from moorage.apiserver.built_in import stored_resources
from moorage.apiserver.kinds import (
    addresses,
    admission_policy,
    autoscaler,
    certificate_request,
    config,
    csi,
    definition,
    devices,
    disruption_budget,
    event,
    extending,
    flow_control,
    jobs,
    lease,
    limit_range,
    namespace,
    networking,
    node,
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
from moorage.apiserver.kinds.kept import with_other_versions
from moorage.apiserver.kinds.pod import kind as pod
from moorage.apiserver.kinds.served import ServedKind

_MODULES = (
    addresses,
    admission_policy,
    autoscaler,
    certificate_request,
    config,
    csi,
    definition,
    devices,
    disruption_budget,
    event,
    extending,
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


def all_kinds() -> list[ServedKind]:
    """Every served kind, in the order of `moorage.apiserver.built_in.stored_resources`."""
    own = {kind.resource: kind for group in GROUPS for kind in group}
    return with_other_versions(own, stored_resources())
