"""Every served kind, put together from one table for each API group.

Place in the flow: `moorage.apiserver.kinds.all_kinds` hands this table to the server at start. A
kind without a row here is served from the facts alone; a kind with behaviour takes a row in the
table of its group (``group_*.py``).
"""

from __future__ import annotations

from moorage.apiserver.built_in import stored_resources
from moorage.apiserver.kinds import (
    group_apiextensions,
    group_apps,
    group_autoscaling,
    group_batch,
    group_coordination,
    group_core,
    group_events,
    group_extending,
    group_networking,
    group_other,
    group_pod_groups,
    group_policy,
    group_rbac,
    group_resource,
    group_scheduling,
    group_storage,
)
from moorage.apiserver.kinds.kept import with_other_versions
from moorage.apiserver.kinds.served import ServedKind

GROUPS: tuple[tuple[ServedKind, ...], ...] = (
    group_core.KINDS,
    group_apiextensions.KINDS,
    group_apps.KINDS,
    group_autoscaling.KINDS,
    group_batch.KINDS,
    group_coordination.KINDS,
    group_events.KINDS,
    group_extending.KINDS,
    group_networking.KINDS,
    group_policy.KINDS,
    group_rbac.KINDS,
    group_scheduling.KINDS,
    group_pod_groups.KINDS,
    group_storage.KINDS,
    group_resource.KINDS,
    group_other.KINDS,
)


def all_kinds() -> list[ServedKind]:
    """Every served kind, in the order of `moorage.apiserver.built_in.stored_resources`."""
    own = {kind.resource: kind for group in GROUPS for kind in group}
    return with_other_versions(own, stored_resources())
