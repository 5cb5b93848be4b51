"""Carries out the kubectl commands of suggestions in a virtual cluster, word for word.

Only the commands that suggestions print are known; another one fails the test.
"""

from __future__ import annotations

import json
import shlex
from typing import Any, Final

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS
from moorage.api.resources import NODES, PODS, ResourceType, by_name
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage_sandbox.testing.virtual_cluster import VirtualCluster

_GROUPS: Final = "podgroups.scheduling.x-k8s.io"


async def carry_out(cluster: VirtualCluster, command: str) -> None:
    """Carry out a command, or several that are joined by ``&&``."""
    for line in command.split(" && "):
        program, *words = shlex.split(line)
        assert program == "kubectl", line
        namespace = ""
        if words[0] == "-n":
            namespace, words = words[1], words[2:]
        verb, *rest = words
        await _VERBS[verb](cluster, namespace, [each for each in rest if each != "--overwrite"])


def _resource(word: str) -> ResourceType:
    found = COSCHEDULING_POD_GROUPS if word == _GROUPS else by_name(word)
    assert found is not None, word
    return found


async def _merge(
    cluster: VirtualCluster, resource: ResourceType, name: str, namespace: str, change: Any
) -> None:
    await cluster.client.patch(
        resource, name, patch_body(change), namespace=namespace, content_type=MERGE_PATCH
    )


async def _patch(cluster: VirtualCluster, namespace: str, words: list[str]) -> None:
    type_, name, form, flag, text = words
    assert (form, flag) == ("--type=merge", "-p")
    await _merge(cluster, _resource(type_), name, namespace, json.loads(text))


async def _create(cluster: VirtualCluster, namespace: str, words: list[str]) -> None:
    type_, name, value = words
    assert (type_, namespace) == ("priorityclass", "")
    manifest = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": int(value.removeprefix("--value=")),
    }
    await cluster.create_objects(manifest)


async def _scale(cluster: VirtualCluster, namespace: str, words: list[str]) -> None:
    type_, name, number = words
    change = {"spec": {"replicas": int(number.removeprefix("--replicas="))}}
    await _merge(cluster, _resource(type_), name, namespace, change)


async def _delete(cluster: VirtualCluster, namespace: str, words: list[str]) -> None:
    assert words[0] == "pod"
    for name in words[1:]:
        await cluster.client.delete(PODS, name, namespace=namespace)


async def _annotate(cluster: VirtualCluster, namespace: str, words: list[str]) -> None:
    type_, name, text = words
    key, _, value = text.partition("=")
    change = {"metadata": {"annotations": {key: value}}}
    await _merge(cluster, _resource(type_), name, namespace, change)


async def _uncordon(cluster: VirtualCluster, namespace: str, words: list[str]) -> None:
    assert not namespace
    node: Any = await cluster.client.get(NODES, words[0])
    taints = [
        each
        for each in node["spec"].get("taints") or []
        if each["key"] != "node.kubernetes.io/unschedulable"
    ]
    change = {"spec": {"unschedulable": None, "taints": taints}}
    await _merge(cluster, NODES, words[0], "", change)


async def _label(cluster: VirtualCluster, namespace: str, words: list[str]) -> None:
    assert words[0] == "node", namespace
    labels: dict[str, str | None] = {}
    for each in words[2:]:
        key, equals, value = each.partition("=")
        labels[key if equals else key.removesuffix("-")] = value if equals else None
    await _merge(cluster, NODES, words[1], "", {"metadata": {"labels": labels}})


async def _taint(cluster: VirtualCluster, namespace: str, words: list[str]) -> None:
    _, name, text = words
    assert text.endswith("-"), namespace
    node: Any = await cluster.client.get(NODES, name)
    gone = text.removesuffix("-")
    taints = [each for each in node["spec"].get("taints") or [] if _taint_text(each) != gone]
    assert len(taints) < len(node["spec"]["taints"]), text
    await _merge(cluster, NODES, name, "", {"spec": {"taints": taints}})


def _taint_text(taint: dict[str, str]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


_VERBS: Final = {
    "patch": _patch,
    "create": _create,
    "scale": _scale,
    "delete": _delete,
    "annotate": _annotate,
    "uncordon": _uncordon,
    "label": _label,
    "taint": _taint,
}
