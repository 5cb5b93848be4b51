"""Devices of the cluster that `run` fills, and pods that get none.

Every node offers a GPU, which its first pod has, and an FPGA with a taint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from moorage.api.codec import from_dict
from moorage.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from moorage.snapshot.snapshot import Snapshot

_DRIVER: Final = "devices.example"
_GPU, _FPGA = "gpu", "fpga"

CLAIMS: Final[Mapping[str, dict[str, Any]]] = {
    "devices taken": {"deviceClassName": _GPU},
    "no device selected": {
        "deviceClassName": _GPU,
        "selectors": [{"cel": {"expression": f'device.attributes["{_DRIVER}"].kind == "none"'}}],
    },
    "too few devices": {"deviceClassName": _GPU, "count": 2},
    "devices with taints": {"deviceClassName": _FPGA},
}
"""The device request in the claim of a pending pod, by the pod's cause."""


def claim_name(cause: str) -> str:
    """Return the name of the claim of a cause's pods."""
    return cause.replace(" ", "-")


def put_devices(snapshot: Snapshot, users: Mapping[str, str]) -> None:
    """Put classes, slices and claims.

    Parameters
    ----------
    users
        The node's name by the uid of the pod that has its GPU.
    """
    listers = snapshot.listers
    for name in (_GPU, _FPGA):
        listers.device_classes.put(from_dict(DeviceClass, _class(name)))
    for node_name in users.values():
        listers.resource_slices.put(from_dict(ResourceSlice, _slice(node_name)))
    for claim in _claims(users):
        listers.resource_claims.put(from_dict(ResourceClaim, claim))


def _class(name: str) -> dict[str, Any]:
    kind = {"cel": {"expression": f'device.attributes["{_DRIVER}"].kind == "{name}"'}}
    return {"metadata": {"name": name}, "spec": {"selectors": [kind]}}


def _slice(node_name: str) -> dict[str, Any]:
    taint = {"key": f"{_DRIVER}/broken", "effect": "NoSchedule"}
    devices = [
        {"name": name, "attributes": {f"{_DRIVER}/kind": {"string": name}}, "taints": taints}
        for name, taints in ((_GPU, []), (_FPGA, [taint]))
    ]
    return {
        "metadata": {"name": node_name},
        "spec": {
            "driver": _DRIVER,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def _claims(users: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the claims of the pods that have GPUs, and those of pending pods."""
    for uid, node_name in users.items():
        claim = _claim(f"of-{node_name}", {"deviceClassName": _GPU})
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
        result = {"request": "r", "driver": _DRIVER, "pool": node_name, "device": _GPU}
        claim["status"] = {
            "allocation": {
                "devices": {"results": [result]},
                "nodeSelector": {"nodeSelectorTerms": [term]},
            },
            "reservedFor": [{"resource": "pods", "name": uid, "uid": uid}],
        }
        yield claim
    for cause, request in CLAIMS.items():
        yield _claim(claim_name(cause), request)


def _claim(name: str, request: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": request}]}},
    }
