"""Reads which pods a question about capacity is about, and which shapes of nodes to try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage.api.resources import by_name
from moorage.base.errors import UsageError
from moorage.cli.manifests import read_manifests
from moorage.cli.what_if.source import Loaded
from moorage.nodeagent.shapes import parse_shape, shaped_nodes
from moorage.what_if.capacity import Kind
from moorage.what_if.course import scene_of
from moorage.what_if.rehearsal import Rehearsal
from moorage.what_if.workloads import OWNERS


def asked(loaded: Loaded, *, like: str, pod_file: str, mix: str) -> tuple[list[Kind], str]:
    """Return the pods that are asked about, and what to call them.

    Raises
    ------
    UsageError
        There is no such owner, or a file has other objects than pods and owners of pods.
    """
    scene = scene_of(Rehearsal(loaded.world))
    if like:
        word, _, name = like.partition("/")
        resource = by_name(word)
        if resource is None or not name:
            raise UsageError(f"--like {like}: write KIND/NAME, such as deployment/web")
        if resource.kind == "Pod":
            pod = loaded.world.objects.pods.get((loaded.namespace, name))
            if pod is None:
                raise UsageError(f"there is no pod {loaded.namespace}/{name}")
            return [Kind(pod)], f"pods like {like}"
        body = scene.workloads.template_of(resource.kind, (loaded.namespace, name))
        return [Kind(_pod(body))], f"pods like those of {like}"
    kinds = [
        _kind(manifest, scene, loaded.namespace, counts=bool(mix))
        for manifest in read_manifests([pod_file or mix])
    ]
    if pod_file and len(kinds) != 1:
        raise UsageError(f"{pod_file} has {len(kinds)} objects; --mix counts several together")
    return kinds, f"mixes of {mix}" if mix else f"pods like {pod_file}"


def _kind(manifest: Mapping[str, Any], scene: Any, namespace: str, *, counts: bool) -> Kind:
    kind = manifest["kind"]
    if kind == "Pod":
        return Kind(_pod(scene.admission.stored(manifest, namespace=namespace)))
    if kind not in OWNERS or kind == "DaemonSet":
        raise UsageError(f"a {kind} has no pods to count; give pods, Deployments and their like")
    stored = scene.admission.stored(manifest, namespace=namespace)
    spec = stored.get("spec") or {}
    template = {"metadata": {}, **(spec.get("template") or {})}
    metadata = {
        **template["metadata"],
        "name": f"{stored['metadata']['name']}-pod",
        "namespace": stored["metadata"]["namespace"],
    }
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    number = spec.get("replicas", spec.get("parallelism", 1)) if counts else 1
    return Kind(_pod(scene.admission.stored(body)), int(number or 0))


def _pod(body: Mapping[str, Any]) -> Pod:
    return from_dict(Pod, body)


def written_shapes(texts: Sequence[str]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return shapes as they are written on the command line.

    Raises
    ------
    UsageError
        A shape cannot be read.
    """
    found: list[tuple[str, Mapping[str, Any]]] = []
    for text in texts:
        template: Any = shaped_nodes([parse_shape(text)], 1)[0]
        found.append((text, template))
    return found
