"""The changes that the page of a sandbox can make: pods, nodes and the time, as commands do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeVar

import msgspec

from moorage.api.quantity import parse_quantity
from moorage.api.resources import NODES, PODS, ResourceType, by_kind
from moorage.base.errors import MoorageError, UsageError
from moorage.base.running_sandboxes import TIME_PATH
from moorage.cli.page.pod_replacement import PodReplacement
from moorage.client.node_writes import create_nodes, list_nodes
from moorage.client.requests import MERGE_PATCH
from moorage.client.status import error_from_answer
from moorage.client.transport import Call, Transport
from moorage.client.writes import Client
from moorage.dashboard.source import Answered
from moorage.explain.answer import ObjectChange
from moorage.nodeshapes.new_nodes import highest_number, new_nodes
from moorage.nodeshapes.shapes import Shape
from moorage.nodeshapes.templates import DEFAULT_RESOURCES

T = TypeVar("T")

_COUNT_MAX: Final = 500


class SamplePods(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Pods to create, all alike.

    Parameters
    ----------
    name
        Their common name; the server adds a suffix.
    count
        How many.
    cpu, memory
        What each requests, as quantities.
    namespace
        Where.
    """

    name: str = "sample"
    count: int = 1
    cpu: str = "500m"
    memory: str = "256Mi"
    namespace: str = "default"


class Cordon(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A node to cordon, or to open again."""

    node: str
    on: bool = True


class NewNodes(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Nodes to add, all alike.

    Parameters
    ----------
    count
        How many.
    cpu, memory
        What each has, as quantities; "" for what a node of a sandbox has.
    """

    count: int = 1
    cpu: str = ""
    memory: str = ""


class Suggestion(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A suggestion of an explanation, with its pod.

    Parameters
    ----------
    namespace, name
        The pod.
    text
        The change as a sentence.
    patch
        The change of the pod as a JSON patch; empty where the pod stays as it is.
    delete
        ``namespace/name`` of the pod that has to go; "" for none.
    also_delete
        Those of the pods that have to go with it.
    create
        Objects to create.
    uncordon
        The node to uncordon; "" for none.
    """

    namespace: str
    name: str
    text: str = ""
    patch: list[dict[str, Any]] = []
    delete: str = ""
    also_delete: tuple[str, ...] = ()
    create: list[dict[str, Any]] = []
    changes: tuple[ObjectChange, ...] = ()


class TimeChange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Another speed of the time, or a step; nothing only asks."""

    speed: float | None = None
    step: float | None = None


async def acts_of_sandbox(transport: Transport, client: Client) -> SandboxActs:
    """Return the changes that a sandbox takes; its time is one where it was started with a speed.

    Raises
    ------
    MoorageError
        The sandbox does not answer.
    """
    answer = await transport.request(Call("GET", TIME_PATH))
    return SandboxActs(transport, client, sets_time=answer.status == HTTPStatus.OK)


class SandboxActs:
    """Changes a sandbox as its administrator.

    Parameters
    ----------
    transport
        Carries the calls.
    client
        The verbs of the API, over it.
    sets_time
        Whether the time can be changed.
    """

    def __init__(self, transport: Transport, client: Client, *, sets_time: bool) -> None:
        self._transport = transport
        self._client = client
        self._acts: Mapping[str, Callable[[bytes], Awaitable[Answered]]] = {
            "create-pods": self._create_pods,
            "cordon": self._cordon,
            "add-nodes": self._add_nodes,
            "apply-suggestion": self._apply_suggestion,
            **({"time": self._time} if sets_time else {}),
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The acts there are."""
        return tuple(self._acts)

    async def perform(self, name: str, body: bytes) -> Answered:
        """Perform an act, as `moorage.dashboard.acts.Acts` describes it."""
        return await self._acts[name](body)

    async def _create_pods(self, body: bytes) -> Answered:
        wanted = _read(body, SamplePods)
        _check_count(wanted.count)
        requests = {"cpu": wanted.cpu, "memory": wanted.memory}
        container = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
        pod = {
            "metadata": {
                "generateName": f"{wanted.name}-",
                "namespace": wanted.namespace,
                "labels": {"app": wanted.name},
            },
            "spec": {"containers": [{**container, "resources": {"requests": requests}}]},
        }
        names = [_name(await self._create(PODS, pod)) for _ in range(wanted.count)]
        return _json_answer({"created": names})

    async def _create(self, resource: ResourceType, obj: dict[str, Any]) -> dict[str, Any]:
        created: Any = await self._client.create(
            resource,
            {"apiVersion": resource.api_version, "kind": resource.kind, **obj},
            namespace=obj["metadata"].get("namespace", "") if resource.namespaced else "",
        )
        return dict(created)

    async def _cordon(self, body: bytes) -> Answered:
        wanted = _read(body, Cordon)
        await self._set_cordon(wanted.node, on=wanted.on)
        return _json_answer({"node": wanted.node, "cordoned": wanted.on})

    async def _set_cordon(self, node: str, *, on: bool) -> None:
        change = msgspec.json.encode({"spec": {"unschedulable": on or None}})
        await self._client.patch(NODES, node, change, content_type=MERGE_PATCH)

    async def _add_nodes(self, body: bytes) -> Answered:
        wanted = _read(body, NewNodes)
        _check_count(wanted.count)
        nodes = await list_nodes(self._client)
        first = highest_number(node.name for node in nodes) + 1
        given = {"cpu": wanted.cpu, "memory": wanted.memory}
        resources = {**DEFAULT_RESOURCES, **{name: each for name, each in given.items() if each}}
        shapes = (Shape(resources=_checked(resources)),)
        names = await create_nodes(self._client, new_nodes(shapes, wanted.count, first=first))
        return _json_answer({"added": names})

    async def _apply_suggestion(self, body: bytes) -> Answered:
        """Apply a suggestion; what may be refused comes before what cannot be undone."""
        wanted = _read(body, Suggestion)
        resources = [_creatable_kind(obj) for obj in wanted.create]
        changed = [_known_kind(each.kind, each.api_version) for each in wanted.changes]
        created = []
        replacement = None
        try:
            for resource, obj in zip(resources, wanted.create, strict=True):
                created.append((resource, await self._create(resource, obj)))
            if wanted.patch:
                replacement = await self._replacement(wanted)
        except MoorageError:
            for resource, made in reversed(created):
                namespace = made["metadata"].get("namespace", "")
                await self._client.delete(resource, _name(made), namespace=namespace)
            raise
        for key in (*([wanted.delete] if wanted.delete else []), *wanted.also_delete):
            namespace, _, name = key.partition("/")
            await self._client.delete(PODS, name, namespace=namespace, grace_seconds=0)
        for resource, each in zip(changed, wanted.changes, strict=True):
            await self._client.patch(
                resource,
                each.name,
                msgspec.json.encode(each.patch),
                namespace=each.namespace,
                content_type=MERGE_PATCH,
            )
        if replacement is not None:
            await replacement.carry_out()
        return _json_answer({"done": wanted.text})

    async def _replacement(self, wanted: Suggestion) -> PodReplacement:
        """Return the replacement of the pod by its changed form, which the server has checked."""
        pod = await self._client.get(PODS, wanted.name, namespace=wanted.namespace)
        replacement = PodReplacement(self._transport, self._client, pod, wanted.patch)
        await replacement.check_replacement()
        return replacement

    async def _time(self, body: bytes) -> Answered:
        wanted = _read(body, TimeChange)
        change = None if wanted == TimeChange() else msgspec.json.encode(wanted)
        call = Call("GET" if change is None else "POST", TIME_PATH, body=change)
        answer = await self._transport.request(call)
        if answer.status != HTTPStatus.OK:
            raise error_from_answer(answer)
        return Answered(answer.body)


def _read(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.MsgspecError as error:
        raise UsageError(str(error)) from error


def _creatable_kind(obj: dict[str, Any]) -> ResourceType:
    return _known_kind(str(obj.get("kind")), str(obj.get("apiVersion")))


def _known_kind(kind: str, api_version: str) -> ResourceType:
    resource = by_kind(kind, api_version)
    if resource is None:
        raise UsageError(f"{kind}: the page knows no such objects")
    return resource


def _check_count(count: int) -> None:
    if not 1 <= count <= _COUNT_MAX:
        raise UsageError(f"count: {count}: write a whole number from 1 to {_COUNT_MAX}")


def _checked(resources: dict[str, str]) -> dict[str, str]:
    for name, amount in resources.items():
        try:
            parse_quantity(amount)
        except ValueError as error:
            raise UsageError(f"{name}: {error}") from error
    return resources


def _name(created: dict[str, Any]) -> str:
    return str(created["metadata"]["name"])


def _json_answer(content: object) -> Answered:
    return Answered(msgspec.json.encode(content))
