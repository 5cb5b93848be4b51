"""Rights of the scheduler as sets, and a cluster in virtual time whose scheduler has only these.

The server's own authorizer decides about every call of the scheduler. The calls are noted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import unquote

from moorage.api.resources import LEASES
from moorage.base.aio import TaskOwner
from moorage.base.clock import ManualClock
from moorage.base.errors import TransportError
from moorage.base.rng import Streams
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.config.own import LoadedConfiguration
from moorage.controllers.cluster import ClusterControllers
from moorage_sandbox.apiserver.rbac.attributes import attributes_of
from moorage_sandbox.apiserver.wire.requests import Request, User
from moorage_sandbox.cluster.in_process import InProcessTransport
from moorage_sandbox.controllers.volumes import VolumeControllers
from moorage_sandbox.controllers.workloads import WorkloadControllers
from moorage_sandbox.testing.builders import Manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from tests.deploy.chart import Objects

NAMESPACE = "moorage"
ACCOUNT = User(
    f"system:serviceaccount:{NAMESPACE}:moorage",
    ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"),
)
START_SECONDS = 60.0
RBAC = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


Script = Callable[[Call], Answer | TransportError | None]
"""What happens to a call: an answer without asking the server, an answer of the server that is
lost, or (None) nothing out of the ordinary."""


class Right(NamedTuple):
    """A verb on a resource, in a namespace or (empty) in all."""

    namespace: str
    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        group = f".{self.group}" if self.group else ""
        return f"{self.verb} {self.resource}{group}{where}"


def granted(objects: Objects) -> set[Right]:
    """Return the rights that the roles among some objects give."""
    return {
        right
        for obj in objects
        if obj["kind"] in ("ClusterRole", "Role")
        for rule in obj["rules"]
        for right in _rights_of(rule, obj["metadata"].get("namespace", ""))
    }


def without(objects: Objects, taken: Right) -> Objects:
    """Return the objects with one right less."""
    return [{**obj, "rules": list(_rest(obj, taken))} if "rules" in obj else obj for obj in objects]


def _rest(role: Manifest, taken: Right) -> Iterable[Manifest]:
    for rule in role["rules"]:
        for right in _rights_of(rule, role["metadata"].get("namespace", "")):
            if right != taken:
                names = {"resourceNames": rule["resourceNames"]} if "resourceNames" in rule else {}
                yield {
                    "apiGroups": [right.group],
                    "resources": [right.resource],
                    "verbs": [right.verb],
                    **names,
                }


def _rights_of(rule: Manifest, namespace: str) -> Iterable[Right]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                yield Right(namespace, group, resource, verb)


class Asking:
    """The scheduler's transport: every call as its service account, noted.

    Parameters
    ----------
    streams_lists
        Whether the server sends lists as streams; servers before Kubernetes 1.34 may not.
    script
        What happens to a call instead.
    """

    def __init__(self, *, streams_lists: bool, script: Script) -> None:
        self.used: set[Right] = set()
        self.inner: Transport | None = None
        self._streams_lists = streams_lists
        self._script = script

    def over(self, inner: Transport) -> Transport:
        """Take the place of a transport that may do everything."""
        del inner
        return self

    async def request(self, call: Call) -> Answer:
        """Send a call."""
        assert self.inner is not None
        self._note(call)
        instead = self._script(call)
        if isinstance(instead, Answer):
            return instead
        answer = await self.inner.request(call)
        if instead is not None and answer.status < 400:
            raise instead
        return answer

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        """Open a stream."""
        assert self.inner is not None
        if not self._streams_lists and ("sendInitialEvents", "true") in call.query:
            return _refused(400)
        self._note(call)
        instead = self._script(call)
        return _refused(instead.status) if isinstance(instead, Answer) else self.inner.stream(call)

    async def close(self) -> None:
        """Do nothing: the server is in this process."""

    def _note(self, call: Call) -> None:
        found = attributes_of(
            Request(method=call.method, path=unquote(call.path), query=call.query)
        )
        if found.path:
            return
        # Only the rights to the Lease, and to tell who holds it, are held in one namespace.
        narrow = (found.group, found.resource) in ((LEASES.group, LEASES.plural), ("", "events"))
        where = found.namespace if narrow else ""
        self.used.add(Right(where, found.group, found.whole_resource, found.verb))
        if found.whole_resource == "resourceclaims/status" and b"reservedFor" in call.whole_body:
            # The server asks for it because of the content; an allocation is always reserved.
            self.used.add(Right(where, found.group, "resourceclaims/binding", found.verb))


class _Nothing:
    headers: Mapping[str, str] = MappingProxyType({})

    def __init__(self, status: int) -> None:
        self.status = status

    async def __aiter__(self) -> AsyncIterator[bytes]:
        lines: tuple[bytes, ...] = ()
        for line in lines:
            yield line


@asynccontextmanager
async def _refused(status: int) -> AsyncIterator[LineStream]:
    yield _Nothing(status)


async def _serving(cluster: VirtualCluster, clock: ManualClock, tasks: TaskOwner) -> None:
    """Run the controllers that make volumes, and that free claims and budgets."""
    parts = (VolumeControllers, WorkloadControllers)
    made = ClusterControllers(cluster.client, clock=clock, streams=Streams(3), parts=parts)
    tasks.spawn(made.run(), name="controllers")
    await made.ready()


def install_roles(cluster: VirtualCluster, objects: Objects) -> None:
    """Enforce RBAC in a cluster, with the accounts and roles among some objects."""
    cluster.server._chain.enforced = True
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    cluster.server.store_object(namespace)
    for obj in objects:
        if obj["kind"] in RBAC:
            cluster.server.store_object(obj)


def play(
    scenario: Callable[[VirtualCluster], Any],
    objects: Objects,
    *,
    nodes: Sequence[Manifest],
    config: LoadedConfiguration,
    streams_lists: bool,
    script: Script,
) -> set[Right]:
    """Run a scenario with a scheduler that has the rights of some objects; return those it used."""
    clock = ManualClock()
    asking = Asking(streams_lists=streams_lists, script=script)

    async def main() -> None:
        cluster = VirtualCluster(clock, nodes=nodes, config=config, around=asking.over)
        install_roles(cluster, objects)
        asking.inner = InProcessTransport(cluster.server, user=ACCOUNT)
        tasks = TaskOwner()
        started = False
        try:
            async with asyncio.timeout(START_SECONDS):
                await cluster.__aenter__()
            started = True
            await _serving(cluster, clock, tasks)
            await scenario(cluster)
        except BaseException as error:
            await tasks.cancel_all()
            await cluster.__aexit__(type(error), error, None)
            raise
        await tasks.cancel_all()
        assert started
        await cluster.__aexit__(None, None, None)

    run_virtual(main(), clock)
    return asking.used
