"""The closed vocabulary of reasons: one code for each cause why a pod has no node.

Codes are for programs, metrics and the titles of pages; the text of a reason stays for people. The
order of the members is the order in which a pod meets the causes on its way: what refuses it before
an attempt, Filter in the order of the default profile, its group, and the steps after the decision.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum, unique
from functools import lru_cache
from typing import Final


@unique
class ReasonCode(StrEnum):
    """A cause why a pod has no node."""

    NOT_TRIED = "NotTriedYet"
    UNKNOWN_SCHEDULER = "UnknownScheduler"
    SCHEDULING_GATED = "SchedulingGated"
    NO_NODES = "NoNodes"
    INVALID_SPEC = "InvalidSpec"
    NODE_CORDONED = "NodeCordoned"
    NODE_NAME = "NodeNameMismatch"
    UNTOLERATED_TAINT = "UntoleratedTaint"
    EXCLUDED_BY_PROFILE = "ExcludedByProfile"
    NO_MATCHING_NODE = "NoMatchingNode"
    HOST_PORT = "HostPortConflict"
    TOO_MANY_PODS = "TooManyPods"
    MEMORY = "InsufficientMemory"
    EPHEMERAL_STORAGE = "InsufficientEphemeralStorage"
    RESOURCE = "InsufficientResource"
    CPU = "InsufficientCPU"
    VOLUME_CLAIM_MISSING = "VolumeClaimMissing"
    VOLUME_CLAIM_PENDING = "VolumeClaimPending"
    VOLUME_MISSING = "VolumeMissing"
    STORAGE_CLASS = "InvalidStorageClass"
    VOLUME_IN_USE = "VolumeInUse"
    VOLUME_LIMIT = "VolumeLimitReached"
    VOLUME_DRIVER = "VolumeDriverMissing"
    VOLUME_NODE = "VolumeNodeConflict"
    NO_MATCHING_VOLUME = "NoMatchingVolume"
    STORAGE = "InsufficientStorage"
    TOPOLOGY_LABEL = "TopologyLabelMissing"
    SPREAD = "TopologySpreadConflict"
    SPREAD_OF_NOMINATED = "NominatedPodSpread"
    POD_AFFINITY = "PodAffinityUnmet"
    ANTI_AFFINITY = "PodAntiAffinityConflict"
    ANTI_AFFINITY_OF_OTHERS = "ExistingAntiAffinity"
    RESOURCE_CLAIM_MISSING = "ResourceClaimMissing"
    RESOURCE_CLAIM_PENDING = "ResourceClaimPending"
    RESOURCE_CLAIM_INVALID = "InvalidResourceClaim"
    RESOURCE_CLAIM_NODE = "ResourceClaimNodeConflict"
    DEVICES = "InsufficientDevices"
    NODE_FEATURE = "MissingNodeFeature"
    NUMA = "NUMANotAligned"
    GPU_MODEL = "NoMatchingGPUModel"
    GPU = "InsufficientGPU"
    QUOTA = "QuotaExceeded"
    QUOTA_INVALID = "InvalidQuota"
    GROUP_MISSING = "GroupMissing"
    GROUP_INVALID = "InvalidGroup"
    GROUP_INCOMPLETE = "GroupIncomplete"
    GROUP_UNSCHEDULABLE = "GroupUnschedulable"
    WAITING_FOR_GROUP = "WaitingForGroup"
    REJECTED_BY_PLUGIN = "RejectedByPlugin"
    EXTENDER = "RejectedByExtender"
    PREEMPTION = "WaitingForPreemption"
    BINDING_FAILED = "BindingFailed"
    SCHEDULER_ERROR = "SchedulerError"


_RANKS: Final = {code: rank for rank, code in enumerate(ReasonCode)}

_C = ReasonCode
_RULES: Final[tuple[tuple[str, ReasonCode], ...]] = (
    (
        r"no profile has that name|^this scheduler does not serve schedulerName",
        _C.UNKNOWN_SCHEDULER,
    ),
    (r"didn't satisfy plugin", _C.NO_MATCHING_NODE),
    (r"^running (PreBind|Bind) plugin", _C.BINDING_FAILED),
    (r"^running \S+ plugin", _C.SCHEDULER_ERROR),
    (r"no nodes available to schedule pods|^there are no nodes", _C.NO_NODES),
    (r"scheduling gates|^Scheduling is blocked due to non-empty", _C.SCHEDULING_GATED),
    # groups: their messages quote those of members, so they come first
    (
        r"minCount pods from a gang to be scheduled|^waiting for \S+ more pods of group"
        r"|members of group \S+ have a place|^sub-group \S+ of group \S+ has enough nodes",
        _C.WAITING_FOR_GROUP,
    ),
    (
        r"pod group \"[^\"]*\" to appear|podgroup\S* \S+ not found|^PodGroup not found"
        r"|^(?:Composite)?PodGroup \S+ not found|can not find pod group|failed to get podGroup"
        r"|pod group for pod not found|PodGroup \S+ does not exist",
        _C.GROUP_MISSING,
    ),
    (
        r"minCount pods from a gang to appear|enough sibling pods|less than pgMinAvailable"
        r"|gated pods in the same PodGroup|lacks pods|tree to meet quorum",
        _C.GROUP_INCOMPLETE,
    ),
    (
        r"^Priorities do not match|^PodGroupMinAvailables do not match|min-available is"
        r"|needs groupMode trial|^annotations \S+ do not match|composite groups are not scheduled"
        r"|is in no sub-group of group|^composite pod group \S+ has more than"
        r"|^composite pod group \S+ (?:is a part of itself|has a group with disruptionMode)",
        _C.GROUP_INVALID,
    ),
    (
        r"^pod group is unschedulable|^resource gap|^podGroup \S+ failed recently"
        r"|^minCount \(|^no pods were schedulable|^optimistic rejection"
        r"|^rejection in Unreserve|gets rejected due to Pod"
        r"|^0/\d+ placements are available|cannot determine domain"
        r"|no pods from pod group are assigned",
        _C.GROUP_UNSCHEDULABLE,
    ),
    # quotas
    (
        r"more than (Max|min)\b|^all ElasticQuotas together"
        r"|used and \S+ asked|^global quota max|^ElasticQuota \S+: .* at most|exceeded quota",
        _C.QUOTA,
    ),
    (r"fix the quota|^ElasticQuota \S+: |^spec\.\S+\[", _C.QUOTA_INVALID),
    # nodes
    (r"node\(s\) were unschedulable", _C.NODE_CORDONED),
    (r"requested node name", _C.NODE_NAME),
    (r"untolerated taint|taint \{", _C.UNTOLERATED_TAINT),
    (r"scheduler-enforced node affinity", _C.EXCLUDED_BY_PROFILE),
    (r"Pod's node affinity/selector|pod affinity terms conflict", _C.NO_MATCHING_NODE),
    (r"free ports for the requested", _C.HOST_PORT),
    (r"^Too many pods", _C.TOO_MANY_PODS),
    (r"^Insufficient cpu\b", _C.CPU),
    (r"^Insufficient memory\b", _C.MEMORY),
    (r"^Insufficient ephemeral-storage\b", _C.EPHEMERAL_STORAGE),
    (r"^Insufficient \S*gpu\b", _C.GPU),
    (r"^Insufficient ", _C.RESOURCE),
    (r"required features", _C.NODE_FEATURE),
    (r"^cannot align|invalid node topology data", _C.NUMA),
    # GPUs
    (r"no GPU of a requested model", _C.GPU_MODEL),
    (r"fewer GPUs than|wholly free GPUs|large enough free share", _C.GPU),
    (r"GPUs are not supported|^annotation \S+ is \"", _C.INVALID_SPEC),
    # steps after the decision
    (
        r"^binding volumes:|^context deadline exceeded|^pod does not exist any more"
        r"|^failed to get node|^failed to check (binding|provisioning)|^ClaimRef got reset"
        r"|^selectedNode annotation reset|^provisioning failed|no matching NodeSelectorTerms"
        r"|there is no API client|\" is gone$|has changed since the decision"
        r"|were taken meanwhile|^writing the chosen GPUs|in the meantime$|^get updated claim"
        r"|^\S+ claim \S+: |^create claim for extended|ExtendedResourceClaimStatus"
        r"|^device binding|allocation not found for node|^timed out trying",
        _C.BINDING_FAILED,
    ),
    # devices
    (
        r"could not find ResourceClaim|resourceclaim \"[^\"]*\" is being deleted"
        r"|^ResourceClaim .* was not created for Pod",
        _C.RESOURCE_CLAIM_MISSING,
    ),
    (
        r"ResourceClaim not created yet|in the process of being allocated"
        r"|waiting for binding conditions|^pod \"[^\"]*\"$",
        _C.RESOURCE_CLAIM_PENDING,
    ),
    (
        r"none of the supported fields|unknown request type|has subrequests"
        r"|unsupported request type|^resource claim .*, request|device class \S+ does not exist"
        r"|CEL (runtime|compile) error|need a CEL runtime|exceeds the claim limit",
        _C.RESOURCE_CLAIM_INVALID,
    ),
    (r"^resourceclaim not available on the node", _C.RESOURCE_CLAIM_NODE),
    (
        r"cannot allocate all claims|cannot fit resource|cannot schedule extended resource"
        r"|invalid resource pools|: timed out trying",
        _C.DEVICES,
    ),
    # volumes
    (r"no available disk|ReadWriteOncePod", _C.VOLUME_IN_USE),
    (r"max volume count", _C.VOLUME_LIMIT),
    (r"CSI driver is not installed", _C.VOLUME_DRIVER),
    (
        r"bound to non-existent|^persistentvolume \"[^\"]*\" not found"
        r"|^PersistentVolume had no name",
        _C.VOLUME_MISSING,
    ),
    (
        r"^persistentvolumeclaim \"[^\"]*\" (not found|is being deleted)|^looking up PVC"
        r"|^PVC \S+ was not created for pod",
        _C.VOLUME_CLAIM_MISSING,
    ),
    (r"unbound immediate|waiting for ephemeral volume controller", _C.VOLUME_CLAIM_PENDING),
    (
        r"VolumeBindingMode not set|^storageclass\S* \S+ not found|no class for claim"
        r"|failed to find storage class|no pv name and storageClass",
        _C.STORAGE_CLASS,
    ),
    (
        r"PersistentVolume's node affinity|volume node affinity conflict"
        r"|no available volume zone",
        _C.VOLUME_NODE,
    ),
    (r"available persistent volumes to bind", _C.NO_MATCHING_VOLUME),
    (r"enough free storage", _C.STORAGE),
    (
        r"^converting volume|^PersistentVolumeClaim had no name|requests\.storage"
        r"|^failed to translate|^failed to get region|^could not translate pv"
        r"|^obtaining pod's hard|^calculating preScoreState|^(failed to parse|parsing) pod",
        _C.INVALID_SPEC,
    ),
    # other pods
    (r"spread constraints \(missing required label\)", _C.TOPOLOGY_LABEL),
    (r"nominated pods' topology spread", _C.SPREAD_OF_NOMINATED),
    (r"topology spread constraints", _C.SPREAD),
    (r"match pod affinity rules", _C.POD_AFFINITY),
    (r"match pod anti-affinity rules", _C.ANTI_AFFINITY),
    (r"existing pods anti-affinity", _C.ANTI_AFFINITY_OF_OTHERS),
    (
        r"waiting for the preemption|terminating pod on the nominated|^ongoing preemption"
        r"|^found a placement for podgroup",
        _C.PREEMPTION,
    ),
    (r"extender", _C.EXTENDER),
)
_COMPILED: Final = tuple((re.compile(pattern), code) for pattern, code in _RULES)
_AVAILABLE: Final = re.compile(r"^(?:0/\d+ nodes are available: ?)+")
_AFTER: Final = re.compile(
    r"\.? (?:preemption: |no new claims to deallocate|still not schedulable)|\. [A-Zn]o "
)
_PARTS: Final = re.compile(r", (?=\d+ )")
_COUNT: Final = re.compile(r"^\d+ ")
_TEXTS_MOST: Final = 4096  # messages whose codes are cached; a guess, about a megabyte


@lru_cache(_TEXTS_MOST)
def code_of_reason(reason: str) -> ReasonCode:
    """Return the code of one reason of a plugin; of a plugin of users, `REJECTED_BY_PLUGIN`."""
    for pattern, code in _COMPILED:
        if pattern.search(reason):
            return code
    return ReasonCode.REJECTED_BY_PLUGIN


def code_of_reasons(reasons: Iterable[str]) -> ReasonCode:
    """Return the code of the reason that a pod met last on its way: those nodes lack least."""
    return max(map(code_of_reason, reasons), key=_RANKS.__getitem__, default=_C.REJECTED_BY_PLUGIN)


@lru_cache(_TEXTS_MOST)
def code_of_message(message: str) -> ReasonCode:
    """Return the code of the message of a failed attempt, of this scheduler or another.

    A message counts nodes by reason. Filter stops at the first plugin that rejects a node, so nodes
    with a later reason have passed more plugins. The reason that comes last on the way of a pod is
    therefore the nearest to a placement, and the code is that reason's.

    Parameters
    ----------
    message
        The text of the condition or the Event; "" for a pod that was not tried.
    """
    if not message:
        return ReasonCode.NOT_TRIED
    head = _AVAILABLE.match(message)
    if head is None:
        return code_of_reason(message)
    rest = message[head.end() :]
    after = _AFTER.search(rest)
    reasons = (rest if after is None else rest[: after.start()]).removesuffix(".")
    return code_of_reasons(_COUNT.sub("", each) for each in _PARTS.split(reasons))
