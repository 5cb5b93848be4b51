"""A scheduler with an extender, from the pod that is created to the pod that runs, in virtual time.

The extender stands behind a transport of its own; it is slow, so that things happen meanwhile.
Not covered: bodies and answers (client), who is asked what (engine).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from moorage.api.meta import ObjectReference
from moorage.api.resources import PODS
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.base.errors import ConfigError
from moorage.client.auth import ServerAccess
from moorage.client.transport import Answer, Call, LineStream
from moorage.config.load import parse_config
from moorage.service.attempts import extenders as service_extenders
from moorage.service.attempts.extenders import OpenExtenders
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
PREFIX = "http://extender"
Answers = Callable[[str, Any], Awaitable[Any]]


class Extender:
    """Stands in for the transports a scheduler opens; answers are a function of verb and body."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self.bodies: list[tuple[str, Any]] = []
        self.closed = 0

    def __call__(self, access: ServerAccess) -> Extender:
        assert access.server == PREFIX
        return self

    async def request(self, call: Call) -> Answer:
        verb, body = call.path.strip("/"), json.loads(call.whole_body)
        self.bodies.append((verb, body))
        answer = await self._answers(verb, body)
        return Answer(200, {}, json.dumps(answer).encode())

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        raise AssertionError(call.path)

    async def close(self) -> None:
        self.closed += 1


def play(
    monkeypatch: pytest.MonkeyPatch,
    settings: str,
    answers: Answers,
    scenario: Callable[[VirtualCluster], Awaitable[None]],
    *,
    more: str = "",
    cpu: str = "4",
) -> Extender:
    extender = Extender(answers)
    monkeypatch.setattr(service_extenders, "OneTryTransport", extender)
    config = parse_config(f"{HEAD}extenders: [{{urlPrefix: '{PREFIX}', {settings}}}]\n{more}")
    clock = ManualClock()

    async def main() -> None:
        nodes = [node_manifest("n1", cpu=cpu), node_manifest("n2", cpu=cpu)]
        async with VirtualCluster(clock, nodes=nodes, config=config) as cluster:
            await scenario(cluster)
            cluster.scheduler.core.queue.validate()
            cluster.scheduler.core.cache.validate()

    run_virtual(main(), clock)
    assert extender.closed == len(config.scheduler.extenders)
    return extender


async def node_of(cluster: VirtualCluster, name: str) -> str:
    found: Any = await cluster.client.get(PODS, name, namespace="default")
    return str(found["spec"].get("nodeName", ""))


def test_the_extender_sees_whole_objects_and_decides(monkeypatch):
    async def answers(verb: str, body: Any) -> Any:
        return [{"Host": "n2", "Score": 10}] if verb == "score" else {"Nodes": body["Nodes"]}

    async def scenario(cluster: VirtualCluster) -> None:
        manifest = pod_manifest("p")
        manifest["spec"]["containers"][0]["env"] = [{"name": "A", "value": "b"}]
        await cluster.create_objects(manifest)
        await aio.sleep(5)
        assert await node_of(cluster, "p") == "n2"

    settings = "filterVerb: filter, prioritizeVerb: score, weight: 100"
    seen = play(monkeypatch, settings, answers, scenario).bodies
    assert [verb for verb, _ in seen] == ["filter", "score"]
    body = seen[0][1]
    assert body["Pod"]["spec"]["containers"][0]["env"] == [{"name": "A", "value": "b"}]
    assert body["Pod"]["spec"]["dnsPolicy"] == "ClusterFirst"  # nothing the scheduler reads
    assert [node["metadata"]["name"] for node in body["Nodes"]["items"]] == ["n1", "n2"]
    assert "kind" not in body["Pod"]


def test_filters_are_asked_in_order_and_scores_all_at_once(monkeypatch):
    told: list[str] = []

    async def answers(verb: str, body: Any) -> Any:
        told.append(f"{verb} asked")
        await aio.sleep(1)
        told.append(f"{verb} answered")
        return {"Nodes": body["Nodes"]} if verb.startswith("filter") else []

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(pod_manifest("p"))
        await aio.sleep(5)
        assert await node_of(cluster, "p")

    verbs = [f"filterVerb: filter{n}, prioritizeVerb: score{n}, weight: 1" for n in (1, 2)]
    play(monkeypatch, f"}}, {{urlPrefix: '{PREFIX}', ".join(verbs), answers, scenario)
    # Both scores are answered at one moment: their order then is that of equal timers.
    assert [*told[:6], *sorted(told[6:])] == [
        *("filter1 asked", "filter1 answered", "filter2 asked", "filter2 answered"),
        *("score1 asked", "score2 asked", "score1 answered", "score2 answered"),
    ]


def test_a_pod_deleted_while_the_extender_thinks_leaves_nothing_behind(monkeypatch):
    async def answers(verb: str, body: Any) -> Any:
        await aio.sleep(3)
        return {"NodeNames": body["NodeNames"]}

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(pod_manifest("p"))
        await aio.sleep(1)
        await cluster.client.delete(PODS, "p", namespace="default")
        await cluster.create_objects(pod_manifest("q"))
        await aio.sleep(20)
        assert await node_of(cluster, "q") in ("n1", "n2")
        assert cluster.scheduler.compare().empty
        assert cluster.scheduler.core.queue.pop() is None

    play(monkeypatch, "filterVerb: filter, nodeCacheCapable: true", answers, scenario)


def test_the_extender_binds(monkeypatch):
    clusters: list[VirtualCluster] = []

    async def answers(verb: str, body: Any) -> Any:
        target = ObjectReference(
            namespace=body["PodNamespace"], name=body["PodName"], uid=body["PodUID"]
        )
        await clusters[0].client.bind(target, node_name=body["Node"])
        return {"Error": ""}

    async def scenario(cluster: VirtualCluster) -> None:
        clusters.append(cluster)
        await cluster.create_objects(pod_manifest("p"))
        await aio.sleep(5)
        assert await node_of(cluster, "p") in ("n1", "n2")

    seen = play(monkeypatch, "bindVerb: bind", answers, scenario).bodies
    assert [verb for verb, _ in seen] == ["bind"]


def test_a_pod_the_extender_rejects_is_tried_again_when_something_happens(monkeypatch):
    busy = ["n1", "n2"]

    async def answers(verb: str, body: Any) -> Any:
        left = [name for name in body["NodeNames"] if name not in busy]
        return {"NodeNames": left, "FailedNodes": dict.fromkeys(busy, "busy")}

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(pod_manifest("p"))
        await aio.sleep(5)
        found: Any = await cluster.client.get(PODS, "p", namespace="default")
        (condition,) = found["status"]["conditions"]
        assert condition["message"].startswith("0/2 nodes are available: 2 busy.")
        assert condition["reason"] == "Unschedulable"
        await cluster.play([node_manifest("n3")])
        await aio.sleep(15)
        assert await node_of(cluster, "p") == "n3"

    play(monkeypatch, "filterVerb: filter, nodeCacheCapable: true", answers, scenario)


def test_a_certificate_that_cannot_be_read_is_a_fault():
    config = parse_config(
        f"{HEAD}extenders: [{{urlPrefix: 'https://x', tlsConfig: {{caFile: /nowhere/ca}}}}]"
    )
    with pytest.raises(ConfigError, match=r"extenders\[0\].tlsConfig.caFile: cannot read /nowh"):
        OpenExtenders(config.scheduler.extenders)


def test_whole_nodes_and_pods_are_kept_only_for_extenders_that_need_them():
    def kept(text: str) -> tuple[bool, bool]:
        opened = OpenExtenders(parse_config(f"{HEAD}{text}").scheduler.extenders)
        return opened.nodes is not None, opened.pods is not None

    assert kept("") == (False, False)
    assert kept("extenders: [{urlPrefix: 'http://x', nodeCacheCapable: true}]") == (False, True)
    assert kept("extenders: [{urlPrefix: 'http://x'}]") == (True, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", (None, False, "", None), id="the authorities of the system"),
        pytest.param("enableHTTPS: true", (None, True, "", None), id="https without authority"),
        pytest.param(
            "enableHTTPS: true, tlsConfig: {caData: Y2E=, caFile: /nowhere, serverName: z}",
            (b"ca", False, "z", None),
            id="an authority as data, which wins over a file",
        ),
        pytest.param("tlsConfig: {insecure: true}", (None, True, "", None), id="trust anybody"),
        pytest.param(
            "tlsConfig: {certData: Y2VydA==, keyData: a2V5}",
            (None, False, "", (b"cert", b"key")),
            id="a certificate of our own",
        ),
    ],
)
async def test_the_tls_settings_of_an_extender_choose_its_trust(monkeypatch, text, expected):
    opened: list[ServerAccess] = []
    monkeypatch.setattr(service_extenders, "OneTryTransport", opened.append)
    OpenExtenders(
        parse_config(f"{HEAD}extenders: [{{urlPrefix: 'https://x/y', {text}}}]").scheduler.extenders
    )
    (access,) = opened
    credential = await access.credentials.credential()
    own = (credential.certificate_pem, credential.key_pem)
    trust = (access.ca_pem, access.insecure_skip_tls_verify, access.tls_server_name)
    assert (access.server, *trust, own) == ("https://x", *expected[:3], expected[3] or (None, None))
