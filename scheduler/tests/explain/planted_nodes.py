"""Planted causes in nodes, other pods, gates and names: what a pod asks of its nodes and profile.

Each function plants its cause in a plan, and returns the beginning of the sentence and the words
that name the cause.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from moorage.config.load import load_config
from scheduler.tests.explain.plan import HOSTNAME, REQUIRED, ZONE, Plan, closed_node

EXAMPLES: Final = Path(__file__).parents[3] / "examples"


def too_large(plan: Plan) -> tuple[str, str]:
    resource, amount = plan.draw.choice([("cpu", "64"), ("memory", "512Gi")])
    plan.pod[resource] = amount
    return "never fits here, not even on an empty node", f"{resource} (it requests"


def no_such_resource(plan: Plan) -> tuple[str, str]:
    requests = {"cpu": "1", "example.com/gpu": "1"}
    plan.pod["containers"] = [
        {
            "name": "main",
            "image": "registry.example/app:1",
            "resources": {"requests": requests, "limits": {"example.com/gpu": "1"}},
        }
    ]
    return "never", "example.com/gpu (it requests 1, none of these nodes has any)"


def no_room(plan: Plan) -> tuple[str, str]:
    resource = plan.draw.choice(["cpu", "memory"])
    for name in plan.open:
        have = plan.nodes[name]["status"]["allocatable"][resource]
        left = {"cpu": 500, "memory": 512}[resource]
        count = int(have.removesuffix("Gi"))
        total = count * (1000 if resource == "cpu" else 1024) - left
        unit = "m" if resource == "cpu" else "Mi"
        parts = plan.draw.randint(1, 3)
        for index in range(parts):
            amount = {resource: f"{total // parts - 150}{unit}"}
            plan.on(name, f"{name}-full{index}", **amount)
    return "would fit on", f"{resource} (it requests 1"


def too_many_pods(plan: Plan) -> tuple[str, str]:
    for name in plan.open:
        for amounts in ("capacity", "allocatable"):
            plan.nodes[name]["status"][amounts]["pods"] = "3"
        for index in range(3):
            plan.on(name, f"{name}-many{index}", cpu="10m")
    return "would fit on", "the number of pods"


def taint(plan: Plan) -> tuple[str, str]:
    effect = plan.draw.choice(["NoSchedule", "NoExecute"])
    for node in plan.nodes.values():
        node["spec"]["taints"] = [{"key": "dedicated", "value": "db", "effect": effect}]
    return "never", f"the taint dedicated=db:{effect}"


def cordon(plan: Plan) -> tuple[str, str]:
    for node in plan.nodes.values():
        node["spec"]["unschedulable"] = True
    return "fits on no node now", "cordoned ("


def selector(plan: Plan) -> tuple[str, str]:
    plan.pod["node_selector"] = {"disk": "ssd"}
    return "never", "its nodeSelector"


def node_affinity(plan: Plan) -> tuple[str, str]:
    expressions = [{"key": "disk", "operator": "In", "values": ["ssd"]}]
    if plan.draw.random() < 0.5:
        expressions.insert(0, {"key": ZONE, "operator": "In", "values": ["a"]})
    terms = [{"matchExpressions": expressions}]
    plan.pod["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    return "never", "its required node affinity"


def host_port(plan: Plan) -> tuple[str, str]:
    port = plan.draw.choice([80, 8080, 9100])
    for name in plan.open:
        plan.on(name, f"{name}-port", cpu="10m", host_ports=[port])
    plan.pod["host_ports"] = [port]
    return "would fit on", f"the host port {port}/TCP"


def spread(plan: Plan) -> tuple[str, str]:
    plan.chooses_zone = False
    for index in range(2):
        for name in plan.open:
            plan.on(name, f"{name}-p{index}", cpu="10m", labels={"app": "p"})
    empty = closed_node(plan.draw, "closed-far", zone="far")
    plan.objects.append(empty)
    plan.pod["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "p"}},
        }
    ]
    return "would fit on", "its topology spread constraint"


def _pod_term(app: str, key: str) -> list[dict[str, Any]]:
    return [{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}]


def pod_affinity(plan: Plan) -> tuple[str, str]:
    key = plan.draw.choice([ZONE, HOSTNAME])
    plan.pod["affinity"] = {"podAffinity": {REQUIRED: _pod_term("nowhere", key)}}
    return "fits on no node now", "its required pod affinity (app=nowhere over "


def anti_affinity(plan: Plan) -> tuple[str, str]:
    for name in plan.open:
        plan.on(name, f"{name}-q", cpu="10m", labels={"app": "q"})
    plan.pod["affinity"] = {"podAntiAffinity": {REQUIRED: _pod_term("q", HOSTNAME)}}
    return "would fit on", "its required pod anti-affinity"


def anti_affinity_of_others(plan: Plan) -> tuple[str, str]:
    affinity = {"podAntiAffinity": {REQUIRED: _pod_term("p", HOSTNAME)}}
    for name in plan.open:
        plan.on(name, f"{name}-q", cpu="10m", labels={"app": "q"}, affinity=affinity)
    return "would fit on", "the required anti-affinity of pod default/open-"


def gates(plan: Plan) -> tuple[str, str]:
    plan.pod["gates"] = ["example.com/quota"]
    return "held before the queue by plugin SchedulingGates", "example.com/quota"


def unserved(plan: Plan) -> tuple[str, str]:
    plan.pod["schedulerName"] = "nobody"
    return "this scheduler does not serve schedulerName", "nobody"


def node_that_is_named(plan: Plan) -> tuple[str, str]:
    """The only node that the pod's affinity names is not there."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}]
    plan.pod["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    return "never", "its required node affinity (metadata.name In [gone] (there is no node gone))"


def declared_features(plan: Plan) -> tuple[str, str]:
    """A feature of the kubelet that no open node declares."""
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    plan.pod["containers"] = [
        {
            "name": "main",
            "image": "registry.example/app:1",
            "restartPolicy": "Never",
            "restartPolicyRules": [rule],
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
        }
    ]
    return "never", "the feature RestartAllContainersOnContainerExits, which these nodes do not"


def quota(plan: Plan) -> tuple[str, str]:
    """The quota of the namespace has less cpu left than the pod requests."""
    plan.config = load_config(EXAMPLES / "profiles" / "elastic-quota.yaml")
    plan.objects.append(
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "ElasticQuota",
            "metadata": {"name": "own", "namespace": "default"},
            "spec": {"min": {"cpu": "100m"}, "max": {"cpu": "500m"}},
        }
    )
    return "is not tried on any node", "ElasticQuota default is more than Max"
