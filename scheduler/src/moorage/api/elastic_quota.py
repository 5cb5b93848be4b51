"""scheduling.x-k8s.io/v1alpha1 ElasticQuota: resources guaranteed to a namespace, and a maximum.

A custom resource: a server serves it only where its definition is installed. Source:
scheduler-plugins ``apis/scheduling/v1alpha1`` of 2026-08.
"""

# ruff: noqa: RUF012  (the codec library gives every struct its own copy of [] and {})
from __future__ import annotations

from moorage.api.meta import ApiObject, ApiStruct, ResourceList


class ElasticQuotaSpec(ApiStruct, frozen=True, kw_only=True):
    """Bounds of the total requests of a namespace's pods.

    ``min`` is guaranteed: amounts that other namespaces borrowed are reclaimed. ``max`` is never
    exceeded. None means no guarantee, or no maximum.
    """

    min: ResourceList | None = None
    max: ResourceList | None = None


class ElasticQuotaStatus(ApiStruct, frozen=True, kw_only=True):
    """Observed state: the amounts in use, where a controller writes them."""

    used: ResourceList = {}


class ElasticQuota(ApiObject, frozen=True, kw_only=True):
    """scheduling.x-k8s.io/v1alpha1 ElasticQuota."""

    spec: ElasticQuotaSpec = ElasticQuotaSpec()
    status: ElasticQuotaStatus = ElasticQuotaStatus()
