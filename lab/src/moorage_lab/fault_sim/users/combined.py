"""Users whose pods combine what a cluster offers: storage, devices, places, images and groups.

A script has few traits of pods, drawn from all, and has each of them often. So any two meet again
and again in some script, and not once in a hundred. What happens to a trait happens in the same
script: volumes, devices and limits come, change and go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from moorage.base.rng import Random
from moorage_lab.fault_sim.users.groups import gang, plain_spec
from moorage_lab.fault_sim.users.plot import CLASSES, HOST, ZONE, ZONES, Maker, Plot
from moorage_lab.fault_sim.users.pods import pod_spec
from moorage_lab.fault_sim.users.stored import (
    DRIVER,
    NO_PROVISIONER,
    csi_node,
    mounting,
    storage_class,
    volume_claim,
)
from moorage_sandbox.testing.builders import Manifest

Trait = Callable[[Plot, Manifest], None]
"""Adds what it asks for to a pod, and creates what this pod has for itself."""

APPS: Final = ("web", "db")
_DEVICES: Final = "devices.example.com"
_CARD: Final = f"{_DEVICES}/card"
# Nodes agree on the size of an image, in MiB; otherwise the order in which they came decides.
_IMAGES: Final = {
    "registry.example/a:1": 100,
    "registry.example/b:1": 400,
    "registry.example/c": 900,
}
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_TRAITS_MOST = 4
_SHARED: Final = {
    "shared-1": "ReadWriteMany",
    "shared-2": "ReadWriteMany",
    "shared-3": "ReadOnlyMany",
    "single": "ReadWriteOncePod",
}
"""The claims that any pod may use, with their access modes."""

# --- traits ---------------------------------------------------------------------------------------


def _mount(pod: Manifest, *volumes: Manifest) -> None:
    mounted = pod["spec"].setdefault("volumes", [])
    for each in volumes:
        mounted.append({**each, "name": f"v{len(mounted)}"})


def _container(pod: Manifest) -> dict[str, Any]:
    first: dict[str, Any] = pod["spec"]["containers"][0]
    return first


def _ephemeral(plot: Plot, pod: Manifest) -> None:
    """Give the pod a volume of its own, which a driver or an administrator makes."""
    claim = volume_claim("", plot.rng.choice(("provided", "local")))["spec"]
    _mount(pod, {"ephemeral": {"volumeClaimTemplate": {"spec": claim}}})


def _claims(plot: Plot, pod: Manifest) -> None:
    """Give the pod one or two claims that wait for it, of any size."""
    names = [plot.name("c") for _ in range(plot.rng.choice((1, 1, 2)))]
    for name in names:
        claim = volume_claim(name, plot.rng.choice(("local", "local", "provided")))
        claim["spec"]["resources"]["requests"]["storage"] = plot.rng.choice(("1Gi", "2Gi", "5Gi"))
        plot.add_creation(claim)
    _mount(pod, *mounting(*names))


def _shared_claim(plot: Plot, pod: Manifest) -> None:
    """Let the pod use a claim that others use as well, or that only one pod may use."""
    _mount(pod, *mounting(plot.rng.choice(tuple(_SHARED))))


def _disk(plot: Plot, pod: Manifest) -> None:
    """Mount a disk that one pod of a node may write."""
    disk = {"pdName": f"disk-{plot.rng.randrange(2)}", "readOnly": plot.rng.random() < 0.5}
    _mount(pod, {"gcePersistentDisk": disk})


def _devices(plot: Plot, pod: Manifest) -> None:
    """Give the pod claims of devices, from a template or shared with others."""
    entries = pod["spec"].setdefault("resourceClaims", [])
    for _ in range(plot.rng.choice((1, 1, 2))):
        source = (
            {"resourceClaimName": plot.rng.choice(("common", "other"))}
            if plot.rng.random() < 0.25
            else {"resourceClaimTemplateName": plot.rng.choice(tuple(_TEMPLATES))}
        )
        entries.append({"name": f"d{len(entries)}", **source})


def _card(plot: Plot, pod: Manifest) -> None:
    """Let the pod ask for devices as for an amount."""
    amount = str(plot.rng.choice((1, 1, 2)))
    for part in ("requests", "limits"):
        _container(pod)["resources"].setdefault(part, {})[_CARD] = amount


def _things(plot: Plot, pod: Manifest) -> None:
    """Let the pod ask for an amount that only some nodes have."""
    for part in ("requests", "limits"):
        _container(pod)["resources"].setdefault(part, {})["example.com/thing"] = "1"


def _node_affinity(plot: Plot, pod: Manifest) -> None:
    """Let the pod ask for a node, or wish for one, by every operator."""
    affinity = pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    if plot.rng.random() < 0.6:
        terms = [_selector_term(plot.rng) for _ in range(plot.rng.choice((1, 2)))]
        affinity[_REQUIRED] = {"nodeSelectorTerms": terms}
    affinity[_PREFERRED] = [
        {"weight": plot.rng.choice((1, 10, 50)), "preference": _selector_term(plot.rng)}
        for _ in range(plot.rng.choice((1, 2)))
    ]


def _selector_term(rng: Random) -> dict[str, Any]:
    expression = rng.choice(
        (
            {"key": "disk", "operator": "In", "values": ["ssd"]},
            {"key": ZONE, "operator": "NotIn", "values": [rng.choice(ZONES)]},
            {"key": "rank", "operator": "Exists"},
            {"key": "rank", "operator": "DoesNotExist"},
            {"key": "rank", "operator": "Gt", "values": ["1"]},
            {"key": "rank", "operator": "Lt", "values": ["2"]},
        )
    )
    return {"matchExpressions": [expression]}


def _pod_wishes(plot: Plot, pod: Manifest) -> None:
    """Let the pod wish to be near some pods, or far from them."""
    kind = plot.rng.choice(("podAffinity", "podAntiAffinity"))
    selector = {"matchLabels": {"app": plot.rng.choice(APPS)}}
    term = {"labelSelector": selector, "topologyKey": plot.rng.choice((HOST, ZONE))}
    wish = {"weight": plot.rng.choice((1, 50)), "podAffinityTerm": term}
    pod["spec"].setdefault("affinity", {}).setdefault(kind, {})[_PREFERRED] = [wish]


def _image(plot: Plot, pod: Manifest) -> None:
    """Let the pod run an image that some nodes have."""
    _container(pod)["image"] = plot.rng.choice(tuple(_IMAGES))


def _start(plot: Plot, pod: Manifest) -> None:
    """Let the pod need more while it starts than while it runs."""
    resources = {"requests": {"cpu": plot.rng.choice(("1", "2")), "memory": "128Mi"}}
    start = {"name": "start", "image": plot.rng.choice(tuple(_IMAGES)), "resources": resources}
    pod["spec"]["initContainers"] = [start]


def _spread(plot: Plot, pod: Manifest) -> None:
    """Spread the pods over hosts and zones, as a rule or as a wish."""
    selector = {"matchLabels": {"app": pod["metadata"]["labels"]["app"]}}
    pod["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": plot.rng.choice((1, 2)),
            "topologyKey": key,
            "whenUnsatisfiable": plot.rng.choice(("DoNotSchedule", "ScheduleAnyway")),
            "labelSelector": selector,
            "nodeTaintsPolicy": plot.rng.choice(("Honor", "Ignore")),
        }
        for key in plot.rng.sample((HOST, ZONE), plot.rng.choice((1, 2)))
    ]


TRAITS: Final[Mapping[str, Trait]] = {
    "ephemeral": _ephemeral,
    "claims": _claims,
    "shared claim": _shared_claim,
    "disk": _disk,
    "devices": _devices,
    "card": _card,
    "things": _things,
    "node affinity": _node_affinity,
    "pod wishes": _pod_wishes,
    "image": _image,
    "start": _start,
    "spread": _spread,
}
"""The traits that a pod can have, by name."""

# --- what there is at the start -------------------------------------------------------------------


def create_offers(plot: Plot) -> None:
    """Draw the traits of a script, and create what they need."""
    rng = plot.rng
    plot.notes["offering"] = list(plot.nodes)
    plot.notes["traits"] = rng.sample(list(TRAITS), rng.randint(1, _TRAITS_MOST))
    for node in plot.standing:
        node["metadata"]["labels"]["rank"] = str(rng.randrange(4))
        if rng.random() < 0.3:
            del node["metadata"]["labels"]["rank"]
        node["status"]["images"] = [
            {"names": [name], "sizeBytes": _IMAGES[name] * 2**20}
            for name in rng.sample(tuple(_IMAGES), rng.randrange(3))
        ]
        if rng.random() < 0.6:
            for amounts in (node["status"]["capacity"], node["status"]["allocatable"]):
                amounts["example.com/thing"] = str(rng.choice((1, 3)))
    for obj in _offers(plot):
        plot.add_creation(obj, at=2.0)


def _offers(plot: Plot) -> Iterator[Manifest]:
    traits = set(plot.notes["traits"])
    for app in APPS:
        spec = {"selector": {"app": app}, "ports": [{"port": 80}]}
        meta = {"name": app, "namespace": "default"}
        yield {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}
    if traits & {"ephemeral", "claims", "shared claim"}:
        yield from _storage(plot)
    if traits & {"devices", "card"}:
        yield device_class_of_all()
        for name, spec in _TEMPLATES.items():
            meta = {"name": name, "namespace": "default"}
            version = "resource.k8s.io/v1"
            template = {"apiVersion": version, "kind": "ResourceClaimTemplate", "metadata": meta}
            yield {**template, "spec": {"spec": {"devices": spec}}}
        for name in ("common", "other"):
            meta = {"name": name, "namespace": "default"}
            claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta}
            yield {**claim, "spec": {"devices": _TEMPLATES["one"]}}
        for node in plot.nodes:
            yield device_slice_of(plot.rng, node)


def _storage(plot: Plot) -> Iterator[Manifest]:
    rng = plot.rng
    yield storage_class("provided")
    yield storage_class("local", provisioner=NO_PROVISIONER)
    yield storage_class("network", waits=False, provisioner=NO_PROVISIONER)
    for node in plot.nodes:
        yield csi_node(node, rng.randint(1, 5))
        for _ in range(rng.randrange(4)):
            yield _local_volume(plot, node)
    for name, mode in _SHARED.items():
        network_volume = _volume(f"network-{name}", "network", "1Gi", mode)
        network_volume["spec"]["csi"] = {"driver": DRIVER, "volumeHandle": name}
        yield network_volume
        yield volume_claim(name, "network", accessModes=[mode])


def _volume(name: str, of_class: str, size: str, mode: str = "ReadWriteOnce") -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": [mode],
            "storageClassName": of_class,
            "persistentVolumeReclaimPolicy": "Retain",
        },
    }


def _local_volume(plot: Plot, node: str) -> Manifest:
    """Return a volume of a node, of any size."""
    name = plot.name("pv")
    made = _volume(name, "local", plot.rng.choice(("1Gi", "2Gi", "10Gi")))
    term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}
    made["spec"]["local"] = {"path": "/disk"}
    made["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return made


def device_class_of_all() -> Manifest:
    """Return the class of all devices, which are asked for as cards as well."""
    selector = {"cel": {"expression": f'device.driver == "{_DEVICES}"'}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "any"},
        "spec": {"selectors": [selector], "extendedResourceName": _CARD},
    }


def device_slice_of(rng: Random, node: str) -> Manifest:
    """Return the devices of a node, which differ in model, place and memory."""
    devices = [
        {
            "name": f"d{number}",
            "attributes": {
                "model": {"string": rng.choice(("a", "b"))},
                "numa": {"int": rng.randrange(2)},
            },
            "capacity": {"memory": {"value": rng.choice(("8Gi", "16Gi"))}},
        }
        for number in range(rng.choice((0, 1, 2, 3)))
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"devices-{node}"},
        "spec": {
            "driver": _DEVICES,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def _of(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": "any", **fields}}


def _where(expression: str) -> list[dict[str, Any]]:
    return [{"cel": {"expression": expression}}]


_MODEL: Final = f'device.attributes["{_DEVICES}"].model'
_MEMORY: Final = f'device.capacity["{_DEVICES}"].memory'
_TEMPLATES: Final[Mapping[str, dict[str, Any]]] = {
    "one": {"requests": [_of("one")]},
    "model": {"requests": [_of("one", selectors=_where(f'{_MODEL} == "a"'))]},
    "memory": {
        "requests": [
            _of("one", selectors=_where(f'{_MEMORY}.compareTo(quantity("16Gi")) >= 0')),
        ]
    },
    "all": {"requests": [_of("one", allocationMode="All")]},
    "near": {
        "requests": [_of("one"), _of("two")],
        "constraints": [{"requests": ["one", "two"], "matchAttribute": f"{_DEVICES}/numa"}],
    },
    "rather": {
        "requests": [
            {
                "name": "one",
                "firstAvailable": [
                    {"name": "two", "deviceClassName": "any", "count": 2},
                    {
                        "name": "b",
                        "deviceClassName": "any",
                        "selectors": _where(f'{_MODEL} == "b"'),
                    },
                    {"name": "any", "deviceClassName": "any"},
                ],
            }
        ]
    },
}
"""The requests of claims of devices, by the name of their template."""

# --- what users do --------------------------------------------------------------------------------


def _pod_of(plot: Plot, app: str) -> Manifest:
    """Return a pod, or the template of pods, with some of the script's traits."""
    spec = plain_spec(plot.rng.choice(("100m", "500m", "500m", "1")))
    _container({"spec": spec})["resources"]["limits"] = {}
    pod: Manifest = {"metadata": {"labels": {"app": app}}, "spec": spec}
    if plot.rng.random() < 0.3:
        spec |= pod_spec(plot.rng, app)
    elif plot.rng.random() < 0.3:
        spec["priorityClassName"] = plot.rng.choice(tuple(CLASSES))
    for name in plot.notes["traits"]:
        if plot.rng.random() < 0.6:
            TRAITS[name](plot, pod)
    return pod


def _pods(plot: Plot) -> None:
    app = plot.rng.choice(APPS)
    for _ in range(plot.rng.choice((1, 2, 3))):
        _create_pod(plot, _pod_of(plot, app), plot.name("x"))


def _create_pod(plot: Plot, pod: Manifest, name: str) -> None:
    meta = {**pod["metadata"], "name": name, "namespace": "default"}
    plot.add_creation({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod["spec"]})
    plot.pods.append(name)


def _writes_disk(pod: Manifest) -> bool:
    disks = (each.get("gcePersistentDisk") for each in pod["spec"].get("volumes", ()))
    return any(disk and not disk["readOnly"] for disk in disks)


def _replicas(plot: Plot) -> None:
    """Create a Deployment: its pods are equal, and what is a pod's own is shared by them."""
    name = plot.name("w")
    labels = {"app": plot.rng.choice(APPS), "of": name}
    template = _pod_of(plot, labels["app"])
    template["metadata"]["labels"] = labels
    replicas = plot.rng.randint(1, 4)
    spec = {
        # The server takes no second replica of a pod that writes a disk.
        "replicas": 1 if _writes_disk(template) else replicas,
        "selector": {"matchLabels": {"of": name}},
        "template": template,
    }
    meta = {"name": name, "namespace": "default"}
    plot.add_creation(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
    )
    plot.sets.append(f"Deployment/{name}")


def _group(plot: Plot) -> None:
    """Create a gang of equal pods, which may have to be in one zone."""
    name = plot.name("gang")
    count = plot.rng.randint(2, 3)
    group = gang(name, count)
    if plot.rng.random() < 0.5:
        key = plot.rng.choice((ZONE, HOST))
        group["spec"]["schedulingConstraints"] = {"topology": [{"key": key}]}
    plot.add_creation(group)
    plot.groups.append(name)
    pod = _pod_of(plot, name)
    pod["spec"]["schedulingGroup"] = {"podGroupName": name}
    for number in range(count):
        _create_pod(plot, pod, f"{name}-{number}")


def _offer(plot: Plot) -> None:
    """Let an administrator add, change or take away something that the pods of a script ask for."""
    rng, traits = plot.rng, set(plot.notes["traits"])
    node = rng.choice(plot.notes["offering"])
    changes: list[Maker] = [_label_node(node)]
    if traits & {"ephemeral", "claims"}:
        changes += [lambda later: later.add_creation(_local_volume(later, node))] * 2
        changes.append(_limit(node))
    if traits & {"devices", "card"}:
        changes += [_renew_devices(node)] * 2
    rng.choice(changes)(plot)


def _label_node(node: str) -> Maker:
    def change(plot: Plot) -> None:
        labels = {
            "rank": plot.rng.choice((None, "0", "2")),
            "disk": plot.rng.choice(("ssd", "hdd")),
        }
        plot.add_change("Node", node, {"metadata": {"labels": labels}}, namespace="")

    return change


def _limit(node: str) -> Maker:
    def change(plot: Plot) -> None:
        spec = csi_node(node, plot.rng.randint(1, 4))["spec"]
        plot.add_change("CSINode", node, {"spec": spec}, namespace="")

    return change


def _renew_devices(node: str) -> Maker:
    def change(plot: Plot) -> None:
        spec = device_slice_of(plot.rng, node)["spec"]
        plot.add_change(
            "ResourceSlice", f"devices-{node}", {"spec": {"devices": spec["devices"]}}, namespace=""
        )

    return change


COMBINED: tuple[Maker, ...] = (*([_pods] * 6), *([_replicas] * 4), _group, _group, _offer, _offer)
"""The doings of these users, each as often as it stands here."""
