"""Calls about some kinds in the API version that a server serves, also when that changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from moorage.api.resources import DEVICE_TAINT_RULES, POD_GROUPS, PODS, RESOURCE_SLICES
from moorage.client import requests
from moorage.client.served_version import ServedVersion
from moorage.client.transport import Answer, Call, LineStream
from scheduler.tests.client.fakes import ScriptedTransport, Stream

LIST = requests.list_objects(POD_GROUPS, requests.Selection())
WATCH = requests.watch(POD_GROUPS, requests.Selection(), resource_version="1", timeout_seconds=9)
GET = requests.get(POD_GROUPS, "g", namespace="n")
NEWEST_FIRST = ["v1beta1", "v1alpha3", "v1alpha2"]


class Server:
    """A server that serves pod groups in some versions; `code` answers for each single object."""

    def __init__(self, *versions: str, code: int = 404) -> None:
        self.versions = versions
        self.object_code = code
        self.plural = "podgroups"
        self.paths: list[str] = []

    def _code(self, call: Call) -> int:
        self.paths.append(call.path)
        if not any(f"/{each}/" in call.path for each in self.versions):
            return 404
        return 200 if call.path.endswith(f"/{self.plural}") else self.object_code

    async def request(self, call: Call) -> Answer:
        return Answer(self._code(call), {}, call.path.encode())

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[LineStream]:
        async with ScriptedTransport(Stream(status=self._code(call))).stream(call) as lines:
            yield lines

    async def close(self) -> None:
        pass


def path(version: str) -> str:
    return f"/apis/scheduling.k8s.io/{version}/podgroups"


async def _watched(transport: ServedVersion) -> int:
    async with transport.stream(WATCH) as lines:
        return lines.status


@pytest.mark.parametrize(
    ("versions", "listed", "code"),
    [
        pytest.param(["v1alpha2"], NEWEST_FIRST, 200, id="1.36"),
        pytest.param(["v1beta1"], NEWEST_FIRST[:1], 200, id="1.37"),
        pytest.param(["v1alpha3"], NEWEST_FIRST[:2], 200, id="1.37 with the alpha API alone"),
        pytest.param(
            ["v1alpha2", "v1alpha3", "v1beta1"], NEWEST_FIRST[:1], 200, id="the newest of several"
        ),
        pytest.param([], NEWEST_FIRST, 404, id="no version: the server says so"),
    ],
)
@pytest.mark.parametrize("watches", [False, True])
def test_the_version_that_is_served_is_found(
    versions: list[str], listed: list[str], code: int, watches: bool
) -> None:
    server = Server(*versions)
    transport = ServedVersion(server)
    if watches:
        assert asyncio.run(_watched(transport)) == code
    else:
        assert asyncio.run(transport.request(LIST)).status == code
    assert server.paths == [path(each) for each in listed]


def test_an_upgrade_of_the_server_is_followed_and_other_calls_are_left_alone() -> None:
    server = Server("v1alpha2")
    transport = ServedVersion(server)

    async def main() -> None:
        await transport.request(LIST)
        server.versions = ("v1beta1",)
        assert await _watched(transport) == 200
        assert (await transport.request(GET)).status == 404  # the object is absent, not the version
        await transport.request(requests.list_objects(PODS, requests.Selection()))

    asyncio.run(main())
    assert server.paths == [
        *map(path, NEWEST_FIRST),
        path("v1beta1"),
        "/apis/scheduling.k8s.io/v1beta1/namespaces/n/podgroups/g",
        "/api/v1/pods",
    ]


@pytest.mark.parametrize(
    ("code", "again"),
    [
        pytest.param(200, ["v1alpha2"], id="an answer names the version"),
        pytest.param(403, NEWEST_FIRST, id="a refusal does not"),
        pytest.param(404, NEWEST_FIRST, id="an absent object does not"),
    ],
)
def test_an_object_is_read_before_any_list(code: int, again: list[str]) -> None:
    server = Server("v1alpha2", code=code)
    transport = ServedVersion(server)

    async def main() -> None:
        for _ in range(2):
            assert (await transport.request(GET)).status == code

    asyncio.run(main())
    objects = [f"/apis/scheduling.k8s.io/{each}/namespaces/n/podgroups/g" for each in NEWEST_FIRST]
    assert server.paths[:3] == objects
    assert server.paths[3:] == [each for each in objects if each.split("/")[3] in again]


@pytest.mark.parametrize(
    ("versions", "listed"),
    [
        pytest.param(["v1", "v1beta2"], ["v1"], id="1.37: the newest version"),
        pytest.param(["v1beta2"], ["v1", "v1beta2"], id="1.36"),
    ],
)
def test_rules_that_taint_devices_are_read_in_the_newest_version(
    versions: list[str], listed: list[str]
) -> None:
    server = Server(*versions)
    server.plural = "devicetaintrules"
    transport = ServedVersion(server)

    async def main() -> None:
        rules = requests.list_objects(DEVICE_TAINT_RULES, requests.Selection())
        assert (await transport.request(rules)).status == 200
        # Other kinds of the same group keep their version.
        await transport.request(requests.list_objects(RESOURCE_SLICES, requests.Selection()))

    asyncio.run(main())
    paths = [f"/apis/resource.k8s.io/{each}/devicetaintrules" for each in listed]
    assert server.paths == [*paths, "/apis/resource.k8s.io/v1/resourceslices"]
