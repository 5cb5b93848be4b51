"""Creates, replaces and deletes objects of any kind that the server has."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final, TypeVar

from moorage.api.resources import ResourceType, by_kind, group_version_path
from moorage.base import aio
from moorage.base.errors import ApiError, ConflictError, MoorageError, NotFoundError, UsageError
from moorage.client.writes import Client
from moorage_lab.bench.scheduler_perf.templates import Manifest

T = TypeVar("T")

# Fields of a pod that admission set; the suite's own server has none of these admission plugins.
_ADMITTED: Final = (
    *("serviceAccountName", "serviceAccount", "imagePullSecrets"),
    *("priorityClassName", "priority", "preemptionPolicy"),
)
_IN_FLIGHT: Final = 30  # calls at once, as in the suite
_ACCOUNT_TRIES: Final = 200
_ACCOUNT_SECONDS: Final = 0.1
_NO_ACCOUNT: Final = "error looking up service account"


class NotSupportedError(MoorageError):
    """The workload asks for something that the server, or moorage, does not have.

    Parameters
    ----------
    what
        Each such thing, by name.
    """

    def __init__(self, *what: str) -> None:
        self.what = what
        super().__init__("; ".join(what))


class Objects:
    """The objects of one run.

    Parameters
    ----------
    client
        Verbs of the server.

    Attributes
    ----------
    made
        The cluster-wide objects that were created, with their resource types.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.created: list[tuple[ResourceType, str]] = []
        self._kinds: dict[tuple[str, str], ResourceType] = {}
        self._priorities: set[int] = set()

    async def kind_of(self, obj: Manifest) -> ResourceType:
        """Return the resource type of an object.

        Raises
        ------
        NotSupportedError
            The server does not have it.
        """
        version, kind = str(obj["apiVersion"]), str(obj["kind"])
        found = self._kinds.get((version, kind)) or by_kind(kind, version)
        if found is None:
            found = await self._discovered(version, kind)
        self._kinds[version, kind] = found
        return found

    async def create_object(self, obj: Manifest, namespace: str = "") -> dict[str, Any]:
        """Create an object and return it as stored.

        Raises
        ------
        UsageError
            A namespace was given for a cluster-wide object, or none for another.
        """
        resource = await self.kind_of(obj)
        self._check(resource, obj, namespace)
        if resource.kind == "Pod":
            await self._with_class(obj)
        made = await self._created(resource, obj, namespace)
        if not resource.namespaced:
            self.created.append((resource, made["metadata"]["name"]))
        return made

    async def replace(
        self, obj: Manifest, namespace: str, subresources: Iterable[str] = ()
    ) -> None:
        """Replace an object and its status, or one of its subresources."""
        resource = await self.kind_of(obj)
        self._check(resource, obj, namespace)
        name = str(obj["metadata"]["name"])
        part = "/".join(subresources)
        if resource.kind == "Pod":
            await self._with_class(obj)
            live: Mapping[str, Any] = await self.client.get(resource, name, namespace=namespace)
            admitted = {key: live["spec"][key] for key in _ADMITTED if key in live["spec"]}
            obj["spec"] = {**admitted, **obj["spec"]}
        await self.client.replace(resource, obj, name=name, namespace=namespace, subresource=part)
        if not part and obj.get("status"):
            await self.client.replace(
                resource, obj, name=name, namespace=namespace, subresource="status"
            )

    async def ensure_namespace(self, name: str, manifest: Mapping[str, Any] | None = None) -> None:
        """Create a namespace if it is not there."""
        base = dict(manifest or {"apiVersion": "v1", "kind": "Namespace"})
        base["metadata"] = {**base.get("metadata", {}), "name": name}
        with contextlib.suppress(ConflictError):
            await self.create_object(base)

    async def _with_class(self, pod: Manifest) -> None:
        """Give a pod with a bare priority a class of that priority.

        The suite's own server runs without the admission plugin Priority, and takes a number.
        """
        priority = pod["spec"].get("priority")
        if priority is None or pod["spec"].get("priorityClassName"):
            return
        del pod["spec"]["priority"]
        if not priority:
            return
        name = f"scheduler-perf-{priority}".replace("--", "-minus-")
        pod["spec"]["priorityClassName"] = name
        if priority in self._priorities:
            return
        obj = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": priority,
        }
        with contextlib.suppress(ConflictError):  # of several pods at once, or an earlier run
            await self.create_object(obj)
        self._priorities.add(priority)

    async def _created(
        self, resource: ResourceType, obj: Manifest, namespace: str
    ) -> dict[str, Any]:
        """Create an object; a pod of a new namespace waits for the namespace's service account.

        A controller of the cluster makes the account, and admission refuses pods until then. The
        suite's own server has neither.
        """
        for _ in range(_ACCOUNT_TRIES):
            try:
                return dict(await self.client.create(resource, obj, namespace=namespace))
            except ApiError as error:
                if resource.kind != "Pod" or _NO_ACCOUNT not in str(error):
                    raise
            await aio.sleep(_ACCOUNT_SECONDS)
        return dict(await self.client.create(resource, obj, namespace=namespace))

    def _check(self, resource: ResourceType, obj: Manifest, namespace: str) -> None:
        if resource.namespaced == bool(namespace):
            return
        name = f"{resource.kind} {obj.get('metadata', {}).get('name', '')}".rstrip()
        if namespace:
            raise UsageError(f"{name}: belongs to no namespace, but {namespace} was given")
        raise UsageError(f"{name}: needs a namespace")

    async def _discovered(self, version: str, kind: str) -> ResourceType:
        group, _, number = version.rpartition("/")
        try:
            listed: Mapping[str, Any] = await self.client.read_path(
                group_version_path(group, number)
            )
        except NotFoundError:
            listed = {}
        for each in listed.get("resources", ()):
            if each["kind"] == kind and "/" not in each["name"]:
                return ResourceType(
                    group=group,
                    version=number,
                    kind=kind,
                    plural=each["name"],
                    singular=each.get("singularName", ""),
                    namespaced=each["namespaced"],
                )
        raise NotSupportedError(f"kind {kind} of {version}")


async def several(items: Iterable[T], work: Callable[[T], Coroutine[Any, Any, object]]) -> None:
    """Do work for each item, some items at a time.

    Raises
    ------
    MoorageError
        The first failure; the rest of the work is given up.
    """
    waiting = iter(items)

    async def drain() -> None:
        for item in waiting:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(_IN_FLIGHT):
                group.create_task(drain())
    except* MoorageError as failed:
        raise failed.exceptions[0] from None
