"""Dynamic resource allocation, as far as a pod refers to it.

A scheduler without the DynamicResources plugin reads these only to recognise a pod it must not
place; the allocation itself is not typed here.
"""

# ruff: noqa: RUF012  (the codec library gives every struct its own copy of [] and {})
from __future__ import annotations

from moorage.api.meta import ApiObject, ApiStruct


class PodResourceClaim(ApiStruct, frozen=True, kw_only=True):
    """An entry of ``pod.spec.resourceClaims``: a claim by name, or a template to make one from."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """Which claim was made for an entry; None means none was needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(ApiStruct, frozen=True, kw_only=True):
    """Which request of the claim serves an extended resource of a container."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """The claim the scheduler made for extended resources backed by devices."""

    resource_claim_name: str = ""
    request_mappings: list[ContainerExtendedResourceRequest] = []


class ContainerResourceClaim(ApiStruct, frozen=True, kw_only=True):
    """An entry of a container's ``resources.claims``."""

    name: str = ""
    request: str = ""


class ResourceClaimConsumerReference(ApiStruct, frozen=True, kw_only=True):
    """Who may use an allocated claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """For whom the claim is reserved."""

    reserved_for: list[ResourceClaimConsumerReference] = []


class ResourceClaim(ApiObject, frozen=True, kw_only=True):
    """resource.k8s.io/v1 ResourceClaim, without its device requests."""

    status: ResourceClaimStatus = ResourceClaimStatus()


class DeviceClassSpec(ApiStruct, frozen=True, kw_only=True):
    """The extended resource name the class also answers to."""

    extended_resource_name: str | None = None


class DeviceClass(ApiObject, frozen=True, kw_only=True):
    """resource.k8s.io/v1 DeviceClass, without its selectors."""

    spec: DeviceClassSpec = DeviceClassSpec()
