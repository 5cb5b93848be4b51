"""Planted causes in labels, taints, conditions, claims together and groups.

Each function plants its cause in a plan, and returns the beginning of the sentence and the words
that name the cause.
"""

from __future__ import annotations

from typing import Any, Final

from scheduler.tests.explain.clusters import waiting
from scheduler.tests.explain.plan import REQUIRED, ZONE, Plan
from scheduler.tests.explain.planted_devices import (
    DRIVER,
    device_class,
    offered,
    resource_claim,
    taken,
    using,
)
from tests.scenarios.gangs import coscheduling, of_labels, of_object, pod_group

_NEVER: Final = "never fits here, not even on an empty node"
_NOW: Final = "fits on no node now"


def one_of_two_labels(plan: Plan) -> tuple[str, str]:
    for node in plan.nodes.values():
        node["metadata"]["labels"]["disk"] = "ssd"
    plan.pod["node_selector"] = {"disk": "ssd", "cpu": "arm"}
    return _NEVER, "its nodeSelector cpu=arm"


def labels_of_a_number(plan: Plan) -> tuple[str, str]:
    for node in plan.nodes.values():
        node["metadata"]["labels"]["generation"] = "3"
    operator, value = plan.draw.choice([("Gt", "5"), ("Lt", "2")])
    expressions = [
        {"key": "generation", "operator": "Exists"},
        {"key": "generation", "operator": operator, "values": [value]},
    ]
    terms = [{"matchExpressions": expressions}]
    plan.pod["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    return _NEVER, f"its required node affinity (generation {operator} "


def a_label_too_many(plan: Plan) -> tuple[str, str]:
    """Every node has the label, the closed ones as well."""
    operator = plan.draw.choice(["DoesNotExist", "NotIn"])
    values = {"values": ["x", "y"]} if operator == "NotIn" else {}
    terms = [{"matchExpressions": [{"key": "pool", "operator": operator, **values}]}]
    plan.pod["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    return _NEVER, f"its required node affinity (pool {operator}"


def one_of_two_taints(plan: Plan) -> tuple[str, str]:
    taints = [{"key": key, "value": "on", "effect": "NoSchedule"} for key in ("known", "unknown")]
    plan.draw.shuffle(taints)
    for node in plan.nodes.values():
        node["spec"]["taints"] = taints
    plan.pod["tolerations"] = [{"key": "known", "operator": "Exists"}]
    return _NEVER, "the taint unknown=on:NoSchedule"


def taint_of_another_value(plan: Plan) -> tuple[str, str]:
    for node in plan.nodes.values():
        node["spec"]["taints"] = [{"key": "group", "value": "b", "effect": "NoSchedule"}]
    toleration = {"key": "group", "operator": "Equal", "value": "a", "effect": "NoSchedule"}
    plan.pod["tolerations"] = [toleration]
    return _NEVER, "the taint group=b:NoSchedule"


def _with_condition(plan: Plan, key: str, kind: str, status: str) -> None:
    for node in plan.nodes.values():
        node["spec"]["taints"] = [{"key": f"node.kubernetes.io/{key}", "effect": "NoSchedule"}]
        node["status"].setdefault("conditions", []).append({"type": kind, "status": status})


def not_ready(plan: Plan) -> tuple[str, str]:
    _with_condition(plan, "not-ready", "Ready", "False")
    return _NOW, "not ready ("


def unreachable(plan: Plan) -> tuple[str, str]:
    _with_condition(plan, "unreachable", "Ready", "Unknown")
    return _NOW, "unreachable ("


def under_pressure(plan: Plan) -> tuple[str, str]:
    kind = plan.draw.choice(["memory", "disk", "pid"])
    condition = {"memory": "MemoryPressure", "disk": "DiskPressure", "pid": "PIDPressure"}[kind]
    _with_condition(plan, f"{kind}-pressure", condition, "True")
    return _NOW, "pressure ("


def without_network(plan: Plan) -> tuple[str, str]:
    _with_condition(plan, "network-unavailable", "NetworkUnavailable", "True")
    return _NOW, "network ("


def claims_that_exclude_each_other(plan: Plan) -> tuple[str, str]:
    """Each of two claims can be met, and not both: each open node has one device."""
    plan.objects += [device_class(), resource_claim("c"), resource_claim("d")]
    plan.objects += [offered(name) for name in plan.open]
    plan.pod["resourceClaims"] = [{"name": name, "resourceClaimName": name} for name in ("c", "d")]
    return _NEVER, "its resource claims c and d, for all of which no node has devices"


def unlike_devices(plan: Plan) -> tuple[str, str]:
    """Two devices of one model are wanted, and each node has two of different models."""
    claim = resource_claim(count=2)
    attribute = f"{DRIVER}/model"
    claim["spec"]["devices"]["constraints"] = [{"matchAttribute": attribute}]
    plan.objects += [device_class(), claim]
    for name in plan.open:
        slice_ = offered(name)
        slice_["spec"]["devices"] = [
            {"name": f"d{model}", "attributes": {"model": {"string": model}}} for model in "ab"
        ]
        plan.objects.append(slice_)
    plan.pod["resourceClaims"] = [{"name": "e", "resourceClaimName": "c"}]
    return _NEVER, "its resource claim c (device class gpu)"


def _requests(plan: Plan, *classes: str) -> None:
    """Let the pod have a claim with a request for one device of each class."""
    claim = resource_claim()
    claim["spec"]["devices"]["requests"] = [
        {"name": f"r{number}", "exactly": {"deviceClassName": name}}
        for number, name in enumerate(classes)
    ]
    of_driver = {"cel": {"expression": "device.driver == 'nic.example'"}}
    cards = {**device_class("nic"), "spec": {"selectors": [of_driver]}}
    plan.objects += [device_class(), cards, claim, *(offered(name) for name in plan.open)]
    plan.pod["resourceClaims"] = using()


def requests_that_exclude_each_other(plan: Plan) -> tuple[str, str]:
    """Each of two requests of one claim can be met, and not both."""
    _requests(plan, "gpu", "gpu")
    return _NEVER, "its resource claim c (device class gpu)"


def one_class_without_devices(plan: Plan) -> tuple[str, str]:
    """The driver of the second class offers nothing yet."""
    _requests(plan, "gpu", "nic")
    return _NOW, "its resource claim c (device classes gpu, nic), for which these nodes offer no"


def counters_used_up(plan: Plan) -> tuple[str, str]:
    """Each of two parts of a device fits, and together they need more than the device has."""
    plan.objects += [device_class(), resource_claim(count=2)]
    for name in plan.open:
        part = {"counterSet": "all", "counters": {"memory": {"value": "6Gi"}}}
        slice_ = offered(name)
        slice_["spec"]["devices"] = [
            {"name": f"d{index}", "consumesCounters": [part]} for index in range(2)
        ]
        plan.objects.append(slice_)
        counters = {"name": "all", "counters": {"memory": {"value": "10Gi"}}}
        shared = {**offered(name)["spec"], "sharedCounters": [counters]}
        del shared["devices"]
        metadata = {"name": f"counters-{name}"}
        plan.objects.append({**offered(name), "metadata": metadata, "spec": shared})
        for each in plan.objects[-2:]:
            each["spec"]["pool"]["resourceSliceCount"] = 2
    plan.pod["resourceClaims"] = using()
    return _NEVER, "its resource claim c (device class gpu), which asks for more devices than"


def _resource_of_a_class(plan: Plan, count: int) -> str:
    classes = device_class()
    classes["spec"]["extendedResourceName"] = "example.com/gpu"
    plan.objects.append(classes)
    name = plan.draw.choice(["example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"])
    amounts = {"cpu": "1", name: str(count)}
    plan.pod["containers"] = [
        {
            "name": "main",
            "image": "registry.example/app:1",
            "resources": {"requests": amounts, "limits": amounts},
        }
    ]
    return f"{name} (it requests {count}, device class gpu), "


def resource_without_devices(plan: Plan) -> tuple[str, str]:
    """A class stands behind the extended resource, and no driver offers a device yet."""
    its = _resource_of_a_class(plan, 1)
    return _NOW, f"{its}for which these nodes offer no device"


def resource_of_too_few_devices(plan: Plan) -> tuple[str, str]:
    its = _resource_of_a_class(plan, 2)
    plan.objects += [offered(name) for name in plan.open]
    return _NEVER, f"{its}which asks for more devices than these nodes offer"


def resource_of_others(plan: Plan) -> tuple[str, str]:
    its = _resource_of_a_class(plan, 1)
    for name in plan.open:
        claim = resource_claim(f"of-{name}", status=taken(name, by=f"{name}-user"))
        plan.objects += [offered(name), claim]
        plan.on(name, f"{name}-user", cpu="10m", resourceClaims=using(f"of-{name}"))
    return "would fit on", f"{its}whose devices on these nodes other pods have"


def _held(plan: Plan, *, least: int, there: int, **fields: Any) -> None:
    plan.config = coscheduling("permit")
    labels = of_labels("p", least=least)["metadata"]["labels"]
    plan.pod |= {"labels": labels, **fields}
    for index in range(1, there):
        plan.objects.append(waiting(f"q{index}", labels=labels, cpu="500m", memory="1Gi"))


def incomplete_at_permit(plan: Plan) -> tuple[str, str]:
    least = plan.draw.randint(2, 4)
    there = plan.draw.randint(1, least - 1)
    _held(plan, least=least, there=there, cpu="500m")
    return "would fit on ", f"its group default/g has {there} of the {least} pods it needs"


def too_large_at_permit(plan: Plan) -> tuple[str, str]:
    """The group is incomplete, and the pod is too large for every node as well."""
    _held(plan, least=3, there=2, cpu="20")
    return _NEVER, "cpu (it requests 20"


def too_large_in_a_complete_group(plan: Plan) -> tuple[str, str]:
    _held(plan, least=2, there=2, cpu="20")
    return _NEVER, "cpu (it requests 20"


def missing_group(plan: Plan) -> tuple[str, str]:
    plan.config = coscheduling()
    plan.pod["labels"] = of_object("p")["metadata"]["labels"]
    return "would fit on ", "its PodGroup default/g does not exist"


def resources_of_the_group(plan: Plan) -> tuple[str, str]:
    plan.config = coscheduling()
    plan.pod["labels"] = of_object("p")["metadata"]["labels"]
    plan.objects.append(pod_group(least=1, minResources={"cpu": "4k"}))
    return "would fit on ", "its group default/g needs 4k cpu free in the cluster"


def gated_member(plan: Plan) -> tuple[str, str]:
    plan.config = coscheduling()
    labels = of_labels("p", least=2)["metadata"]["labels"]
    plan.pod["labels"] = labels
    plan.objects.append(waiting("q1", labels=labels, gates=["example.com/later"]))
    return "would fit on ", "needs 2 pods, and 1 of its 2 is not tried: pod default/q1 is held"


def zone_without_label(plan: Plan) -> tuple[str, str]:
    """The pod has to be near to its like over a label that no node has."""
    term = {"labelSelector": {"matchLabels": {"app": "p"}}, "topologyKey": "rack"}
    plan.pod["affinity"] = {"podAffinity": {REQUIRED: [term]}}
    return _NEVER, "its required pod affinity (app=p over rack"


def other_zone_only(plan: Plan) -> tuple[str, str]:
    plan.pod["node_selector"] = {ZONE: "z"}
    return _NEVER, f"its nodeSelector {ZONE}=z"
