"""Writes that the server answers with a conflict: they are tried again."""

from __future__ import annotations

from moorage.base import aio
from moorage.client.transport import Answer, Call
from moorage.nodeshapes.templates import default_nodes
from sandbox.tests.nodeagent.memory_api import MemoryApi, _failure
from sandbox.tests.nodeagent.test_agents import phases, play, pod


class Contended(MemoryApi):
    """A server that answers the first patch of a node with a conflict."""

    def __init__(self) -> None:
        super().__init__()
        self.conflicts = 1

    async def request(self, call: Call) -> Answer:
        if self.conflicts and call.method == "PATCH" and "/nodes/" in call.path:
            self.conflicts -= 1
            return _failure(409, "Conflict")
        return await super().request(call)


def test_a_conflict_about_a_node_that_exists_does_not_end_the_agents():
    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod())
        await aio.sleep(10)

    api = Contended()
    api.put("nodes", default_nodes(1)[0])
    play(scene, api=api)
    assert api.conflicts == 0
    assert phases(api)[-1] == "Running"
    assert api.get("nodes", "node-01", "")["status"]["conditions"]


class Stubborn(MemoryApi):
    """A server that answers every status of a pod with a conflict."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = 0

    async def request(self, call: Call) -> Answer:
        if call.method == "PATCH" and "/pods/" in call.path:
            self.refused += 1
            return _failure(409, "Conflict")
        return await super().request(call)


def test_a_conflict_about_the_newest_version_of_a_pod_is_not_tried_again_at_once():
    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod())
        await aio.sleep(60)

    api = Stubborn()
    play(scene, api=api)
    assert 1 < api.refused < 20
    assert phases(api) == ["Pending"]
