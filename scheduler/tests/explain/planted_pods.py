"""Planted causes in other pods and in containers: pods that leave, that are nominated, that stay.

Each function plants its cause in a plan, and returns the beginning of the sentence and the words
that name the cause.
"""

from __future__ import annotations

from typing import Any, Final

from moorage_sandbox.testing.builders import Manifest
from scheduler.tests.explain.clusters import waiting
from scheduler.tests.explain.plan import REQUIRED, ZONE, Plan

_NEVER: Final = "never fits here, not even on an empty node"
_NOW: Final = "fits on no node now"


def _container(name: str = "main", **requests: str) -> Manifest:
    return {
        "name": name,
        "image": "registry.example/app:1",
        "resources": {"requests": requests, "limits": {**requests}},
    }


def _left(plan: Plan, name: str, *, milli: int) -> str:
    """Return the cpu of a pod that leaves so much of a node."""
    return f"{int(plan.nodes[name]['status']['allocatable']['cpu']) * 1000 - milli}m"


def local_storage(plan: Plan) -> tuple[str, str]:
    for node in plan.nodes.values():
        for amounts in ("capacity", "allocatable"):
            node["status"][amounts]["ephemeral-storage"] = "10Gi"
    plan.pod["containers"] = [_container(**{"cpu": "1", "ephemeral-storage": "1Ti"})]
    return _NEVER, "ephemeral-storage (it requests 1Ti"


def huge_pages(plan: Plan) -> tuple[str, str]:
    plan.pod["containers"] = [_container(**{"cpu": "1", "hugepages-2Mi": "4Mi"})]
    return _NEVER, "hugepages-2Mi (it requests 4Mi, none of these nodes has any)"


def init_container(plan: Plan) -> tuple[str, str]:
    plan.pod["initContainers"] = [_container("setup", cpu="40")]
    return _NEVER, "cpu (it requests 40"


def sidecar(plan: Plan) -> tuple[str, str]:
    plan.pod["initContainers"] = [{**_container("proxy", cpu="40"), "restartPolicy": "Always"}]
    return _NEVER, "cpu (it requests 41"


def overhead(plan: Plan) -> tuple[str, str]:
    fixed = {"podFixed": {"cpu": "40"}}
    plan.objects.append(
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "vm"},
            "handler": "vm",
            "overhead": fixed,
        }
    )
    plan.pod |= {"runtimeClassName": "vm", "overhead": fixed["podFixed"]}
    return _NEVER, "cpu (it requests 41"


def devices_of_others(plan: Plan) -> tuple[str, str]:
    """Each open node has one extended resource, which another pod has."""
    for name, node in plan.nodes.items():
        for amounts in ("capacity", "allocatable"):
            node["status"][amounts]["example.com/gpu"] = "1"
        plan.on(name, f"{name}-gpu", containers=[_container(**{"example.com/gpu": "1"})])
    plan.pod["containers"] = [_container(**{"cpu": "1", "example.com/gpu": "1"})]
    return "would fit on", "example.com/gpu (it requests 1, the most that is free"


def pods_of_sets(plan: Plan) -> tuple[str, str]:
    """A DaemonSet takes so much of each node that the pod never fits next to it."""
    for name in plan.open:
        plan.on(name, f"{name}-agent", cpu=_left(plan, name, milli=500))
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "uid-agent"}
        plan.others[-1]["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    return _NEVER, "cpu (it requests 1"


def terminating(plan: Plan) -> tuple[str, str]:
    """One pod on each open node is in the way, and terminates already."""
    for name in plan.open:
        plan.on(name, f"{name}-leaving", cpu=_left(plan, name, milli=700))
        plan.others[-1]["metadata"] |= {
            "deletionTimestamp": "2026-01-01T00:00:30Z",
            "deletionGracePeriodSeconds": 30,
            "finalizers": ["example.com/wait"],
        }
    return "would fit on", "cpu (it requests 1"


def _priority_class(name: str, value: int, **fields: str) -> Manifest:
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**head, "metadata": {"name": name}, "value": value, **fields}


def nominated(plan: Plan) -> tuple[str, str]:
    """Pods of higher priority are nominated to the open nodes, and take them next."""
    plan.objects.append(_priority_class("high", 1000))
    high = {"priority": 1000, "priorityClassName": "high"}
    for name in plan.open:
        cpu, own = _left(plan, name, milli=700), {"kubernetes.io/hostname": name}
        pod = waiting(f"{name}-next", cpu=cpu, node_selector=own, **high)
        plan.objects.append({**pod, "status": {"nominatedNodeName": name}})
    return "would fit on", "cpu (it requests 1"


def spread_of_nominated(plan: Plan) -> tuple[str, str]:
    """Pods of higher priority are nominated to the open nodes, and must be the only ones there."""
    plan.objects.append(_priority_class("high", 1000))
    constraint = {
        "maxSkew": 1,
        "minDomains": 100,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "p"}},
    }
    for name in plan.open:
        pod = waiting(
            f"{name}-next",
            cpu="10m",
            labels={"app": "p"},
            node_selector={"kubernetes.io/hostname": name},
            topologySpreadConstraints=[constraint],
            priority=1000,
            priorityClassName="high",
        )
        plan.objects.append({**pod, "status": {"nominatedNodeName": name}})
    found = "the topology spread over kubernetes.io/hostname of nominated pod default/open-"
    return "would fit on", found


def only_a_class_that_never_preempts(plan: Plan) -> tuple[str, str]:
    """The one PriorityClass that is high enough does not preempt."""
    plan.objects += [
        _priority_class("polite", 1000, preemptionPolicy="Never"),
        _priority_class("low", 10),
    ]
    low = {"priority": 10, "priorityClassName": "low"}
    for name in plan.open:
        plan.on(name, f"{name}-full", cpu=_left(plan, name, milli=500), **low)
    return "would fit on", "cpu (it requests 1"


def port_of_another_protocol(plan: Plan) -> tuple[str, str]:
    """Only the UDP port is in use; the TCP port of the same number is free."""
    ports = [
        {"containerPort": 53, "hostPort": 53, "protocol": protocol} for protocol in ("TCP", "UDP")
    ]
    for name in plan.open:
        plan.on(name, f"{name}-dns", containers=[{**_container(cpu="10m"), "ports": ports[1:]}])
    plan.pod["containers"] = [{**_container(cpu="1"), "ports": ports}]
    return "would fit on", "the host port 53/UDP"


def requests_of_the_pod(plan: Plan) -> tuple[str, str]:
    plan.pod["resources"] = {"requests": {"cpu": "40"}, "limits": {"cpu": "40"}}
    return _NEVER, "cpu (it requests 40"


def port_of_one_address(plan: Plan) -> tuple[str, str]:
    """A port of one address is in the way of the same port of every address."""
    port = {"containerPort": 9000, "hostPort": 9000}
    for name in plan.open:
        own = {**_container(cpu="10m"), "ports": [{**port, "hostIP": "10.0.0.1"}]}
        plan.on(name, f"{name}-own", containers=[own])
    plan.pod["containers"] = [{**_container(cpu="1"), "ports": [port]}]
    return "would fit on", "the host port 9000/TCP"


def enemies_of_other_namespaces(plan: Plan) -> tuple[str, str]:
    metadata = {"name": "other", "labels": {"team": "x"}}
    plan.objects.append({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    for name in plan.open:
        plan.on(name, f"{name}-q", namespace="other", cpu="10m", labels={"app": "q"})
    term = {
        "labelSelector": {"matchLabels": {"app": "q"}},
        "namespaceSelector": {"matchLabels": {"team": "x"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    plan.pod["affinity"] = {"podAntiAffinity": {REQUIRED: [term]}}
    return "would fit on", "its required pod anti-affinity (app=q over "


def one_of_two_terms(plan: Plan) -> tuple[str, str]:
    """A pod for the first term is there, and none for the second."""
    for name in plan.open:
        plan.on(name, f"{name}-db", cpu="10m", labels={"app": "db"})
    terms = [
        {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": ZONE}
        for app in ("db", "cache")
    ]
    plan.draw.shuffle(terms)
    plan.pod["affinity"] = {"podAffinity": {REQUIRED: terms}}
    return _NOW, "its required pod affinity (app=cache over "


def partner_in_another_namespace(plan: Plan) -> tuple[str, str]:
    metadata = {"name": "other", "labels": {"kubernetes.io/metadata.name": "other"}}
    plan.objects.append({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    for name in plan.open:
        plan.on(name, f"{name}-db", namespace="other", cpu="10m", labels={"app": "db"})
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": ZONE}
    plan.pod["affinity"] = {"podAffinity": {REQUIRED: [term]}}
    return _NOW, "its required pod affinity (app=db over "


def one_of_two_enemies(plan: Plan) -> tuple[str, str]:
    """Pods of the second term are there, and none of the first."""
    for name in plan.open:
        plan.on(name, f"{name}-q", cpu="10m", labels={"app": "q"})
    terms = [
        {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
        for app in ("absent", "q")
    ]
    plan.draw.shuffle(terms)
    plan.pod["affinity"] = {"podAntiAffinity": {REQUIRED: terms}}
    return "would fit on", "its required pod anti-affinity (app=q over "


def _spread(app: str = "p", key: str = ZONE, **fields: Any) -> Manifest:
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
        **fields,
    }


def too_few_domains(plan: Plan) -> tuple[str, str]:
    """The zones are even, and there are fewer than minDomains."""
    plan.chooses_zone = False
    for name in plan.open:
        plan.on(name, f"{name}-p", cpu="10m", labels={"app": "p"})
    plan.pod["topologySpreadConstraints"] = [_spread(minDomains=5)]
    return "would fit on", "its topology spread constraint"


def domains_without_label(plan: Plan) -> tuple[str, str]:
    plan.pod["topologySpreadConstraints"] = [_spread(key="rack")]
    return _NEVER, "its topology spread constraint"


def one_of_two_constraints(plan: Plan) -> tuple[str, str]:
    """The pods are even over the nodes, and there are too few zones."""
    plan.chooses_zone = False
    for name in plan.open:
        plan.on(name, f"{name}-p", cpu="10m", labels={"app": "p"})
    even = _spread(key="kubernetes.io/hostname", maxSkew=2)
    uneven = _spread(minDomains=9)
    constraints = [even, uneven]
    plan.draw.shuffle(constraints)
    plan.pod["topologySpreadConstraints"] = constraints
    return "would fit on", f"its topology spread constraint over {ZONE} (maxSkew 1, minDomains 9)"
