"""DefaultBinder: what it sends, and what becomes of each kind of answer."""

from __future__ import annotations

import pytest

from moorage.base.errors import ConflictError, TransportError
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import SUCCESS, error
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.plugins.builders import make, pod


class Recorder:
    """A client that notes bindings, or fails."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.bound: list[tuple[str, str, str, str]] = []
        self._failure = failure

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        if self._failure is not None:
            raise self._failure
        self.bound.append((namespace, name, uid, node_name))


async def test_the_binding_names_pod_uid_and_node():
    client = Recorder()
    plugin, _ = make("DefaultBinder", client=client)
    assert await plugin.bind(CycleState(), PodInfo(pod("web")), "n7") == SUCCESS
    assert client.bound == [("default", "web", "uid-web", "n7")]


async def test_an_error_of_the_server_is_an_error_status_with_the_servers_text():
    conflict = ConflictError(409, "Conflict", 'pod "web" is already assigned to node "n1"')
    plugin, _ = make("DefaultBinder", client=Recorder(conflict))
    found = await plugin.bind(CycleState(), PodInfo(pod("web")), "n7")
    assert found == error('pod "web" is already assigned to node "n1"')


async def test_a_transport_error_is_raised_to_the_binding_task():
    plugin, _ = make("DefaultBinder", client=Recorder(TransportError("timed out")))
    with pytest.raises(TransportError):
        await plugin.bind(CycleState(), PodInfo(pod("web")), "n7")


async def test_bind_without_a_client_is_an_error():
    plugin, _ = make("DefaultBinder")
    found = await plugin.bind(CycleState(), PodInfo(pod("web")), "n7")
    assert found == error("pod default/web: nothing can be bound here, there is no API client")
