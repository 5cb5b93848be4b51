"""Dynamic resource allocation, as far as a pod refers to it.

The claims, their requests and their allocations are in `moorage.api.devices`.
"""

# ruff: noqa: RUF012  (the codec library gives every struct its own copy of [] and {})
from __future__ import annotations

import msgspec

from moorage.api.meta import ApiStruct


class ClaimUsers(msgspec.Struct, frozen=True):
    """The pods that name a claim in spec or status, told by the claim's namespace and name."""

    namespace: str
    claim: str


class PodResourceClaim(ApiStruct, frozen=True, kw_only=True):
    """An entry of ``pod.spec.resourceClaims``: a claim's name, or a claim template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """The claim that was made for an entry; None where no claim was needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(ApiStruct, frozen=True, kw_only=True):
    """The request of the claim that serves an extended resource of a container."""

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
