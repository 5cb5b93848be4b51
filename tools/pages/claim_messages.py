"""What DynamicResources says when it refuses a pod, and what to do about it.

A part of ``tools.pages.plugin_messages``, in a file of its own for its length.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_RETRIED: Final = "Nothing: the pod is tried again. Look at the claim if it goes on."
_WAIT_FOR_CLAIM: Final = (
    "Wait for the controller that makes claims from templates, or look why it does not."
)
_READY: Final = (
    "Look at `status.devices` of the claim: its driver says there what the device is waiting for, "
    "or what failed. The pod is tried again, if need be with other devices."
)
_API: Final = "Look at what the API server says; the pod is tried again."
_CLAIM: Final = "Correct the request the message names: a claim cannot be changed, so make it anew."
_CLASS: Final = "Create the DeviceClass, or correct `deviceClassName` in a new claim."
_PART: Final = "Begins one of the messages below."

CLAIM_MESSAGES: Final[Mapping[str, str]] = {
    'could not find ResourceClaim "<namespace>/<name>"': (
        "Create the claim in the pod's namespace, or correct `resourceClaimName`."
    ),
    'pod "<namespace>/<name>"': _PART,
    "<pod>: ResourceClaim not created yet": _WAIT_FOR_CLAIM,
    '<pod>, spec.resourceClaim "<name>": none of the supported fields are set': (
        "Name a claim, or a template to make one from."
    ),
    'resourceclaim "<name>" is being deleted': (
        "Wait until it is gone, then create it again; or use another one."
    ),
    "ResourceClaim <claim> was not created for Pod <namespace>/<name> (Pod is not owner)": (
        "Delete the claim, which somebody made under the name a claim of this pod should have."
    ),
    "resource claim <claim> is in the process of being allocated": (
        "Nothing: another pod that uses the claim is on its way to a node; this one is next."
    ),
    "resource claim <claim>, request <request>": _PART,
    "<where>: unknown request type": _CLAIM,
    "<where>: has subrequests, but the DRAPrioritizedList feature is disabled": (
        "Ask for one thing in a new claim, or leave the feature gate as it is by default."
    ),
    "request <request>: unsupported request type": _CLAIM,
    "request <request>: device class <class> does not exist": _CLASS,
    "cannot allocate all claims": (
        "The node has no free devices that match: look at the ResourceSlices of the node and at "
        "the claim's selectors and constraints, free devices, or add some."
    ),
    "invalid resource pools were encountered": (
        "A driver publishes slices that contradict each other: look at its ResourceSlices."
    ),
    "resourceclaim not available on the node": (
        "The claim is allocated, and its devices cannot be reached from this node, or do not get "
        "ready: use another claim, or free it so that it is allocated anew."
    ),
    "cannot fit resource": (
        "The node does not offer the extended resource, and no DeviceClass answers to it: install "
        "a device plugin, or name the resource in a class."
    ),
    "cannot schedule extended resource claim": (
        "Nothing: an earlier attempt left its claim behind, which is deleted now."
    ),
    "node <node>: timed out trying to allocate devices": (
        "Simplify the claim (constraints over many devices take long to search), or raise "
        "`filterTimeout`."
    ),
    "no new claims to deallocate": (
        "Nothing: it only says that this plugin has no way to make room. See the other reasons."
    ),
    "still not schedulable": (
        "Nothing: no claim of the pod could be freed to be allocated elsewhere. See the other "
        "reasons."
    ),
    "deallocation of ResourceClaim completed": (
        "Nothing: devices the pod cannot use are given back, and it is tried again."
    ),
    "deletion of ResourceClaim completed": (
        "Nothing: a claim an earlier attempt left behind is deleted, and the pod is tried again."
    ),
    "claim allocation not found for node": _RETRIED,
    "pod <pod>: no claim can be written here, there is no API client": (
        "Nothing can be written where there is no server, as in a benchmark; anywhere else, "
        "report it."
    ),
    "claim <claim> got allocated elsewhere in the meantime": _RETRIED,
    "claim <claim> got deallocated elsewhere in the meantime": _RETRIED,
    "claim <claim> got deleted in the meantime": _RETRIED,
    "get updated claim <claim> after conflict: <problem>": _API,
    "<action> claim <claim>: <problem>": _API,
    "create claim for extended resources <claim>: <problem>": _API,
    "update pod <pod> ExtendedResourceClaimStatus: <problem>": _API,
    'could not find ResourceClaim "<claim>"': "Nothing: it was deleted while its pod was bound.",
    'device binding failed: claim=<claim>, reason=<reason>, message="<message>"': _READY,
    "device binding timeout: claim=<claim>": _READY,
    "device binding timeout: context deadline exceeded": _READY,
    "waiting for binding conditions for device on node <node>": (
        "Nothing: an Event that says what the pod waits for before it is bound."
    ),
    "<selector> on device <device>: CEL runtime error: <problem>": (
        "Correct the expression of the class or claim; the device may lack what it asks for."
    ),
    "<selector>: CEL compile error: <problem>": "Correct the expression of the class or claim.",
    "selectors need a CEL runtime, which is not installed: pip install 'moorage[dra]'": (
        "As it says, then start the scheduler again."
    ),
    "claim <claim>: number of requested devices <devices> exceeds the claim limit of <limit>": (
        "Ask for fewer devices in one claim."
    ),
}
"""By message; what else is wrong with claims, classes and slices says by itself where it is."""
