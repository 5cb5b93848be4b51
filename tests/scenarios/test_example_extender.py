"""The example extender as a process, and a whole cluster beside it that asks it: well and badly.

``moorage example-extender`` runs by itself, and a scheduler in the test's loop speaks HTTP with it.
What a scheduler makes of each answer in detail is in ``scheduler/tests/client/test_extender.py``
and ``scheduler/tests/engine/extenders/test_cycle.py``.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.certificates import Authority
from moorage.base.clock import SystemClock
from moorage.base.rng import Streams
from moorage.cli.main import main
from moorage.client.writes import Client
from moorage.config.load import load_config, parse_config
from moorage.nodeshapes.templates import complete
from moorage.plugins.in_tree import in_tree_registry
from moorage_sandbox.apiserver.bootstrap import bootstrap
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.server import ApiServer
from moorage_sandbox.cluster.in_process import InProcessTransport
from moorage_sandbox.cluster.schedulers import scheduler_over
from moorage_sandbox.nodeagent.agents import NodeAgents
from moorage_sandbox.sandbox.example_extender import KEEP, MAINTENANCE, POWER, ExampleExtender
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest

ROOT = Path(__file__).resolve().parents[2]
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
VERBS = "filterVerb: filter, prioritizeVerb: prioritize, weight: 10, preemptVerb: preempt"
SECONDS_MAX = 30.0


class Process:
    """A running example extender."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "moorage.cli.main", "example-extender", "--port", "0"]
        self.child = subprocess.Popen(
            [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.child.stdout is not None
        self.url = self.child.stdout.readline().removeprefix("urlPrefix: ").strip()
        assert self.url, self.child.communicate()

    def stats(self) -> Any:
        with urllib.request.urlopen(f"{self.url}/stats", timeout=SECONDS_MAX) as answer:
            return json.load(answer)

    def stop(self) -> int:
        self.child.terminate()
        self.child.communicate(timeout=SECONDS_MAX)
        return self.child.returncode


@contextmanager
def extender(*arguments: str) -> Iterator[Process]:
    process = Process(*arguments)
    try:
        yield process
    finally:
        assert process.stop() == 0


class Cluster:
    """A server, nodes and a scheduler with an extender, in the loop and time of the test."""

    def __init__(self, settings: str) -> None:
        clock, streams = SystemClock(), Streams(1)
        self.server = ApiServer(served_kinds(), clock=clock, streams=streams)
        bootstrap(self.server)
        self.client = Client(InProcessTransport(self.server), rng=streams.stream("test"))
        self.scheduler = scheduler_over(
            InProcessTransport(self.server),
            parse_config(f"{HEAD}leaderElection: {{leaderElect: false}}\nextenders: [{settings}]"),
            in_tree_registry(),
            clock=clock,
            streams=streams,
            host="test",
        )
        self.clock, self.streams = clock, streams
        self.failures: list[BaseException] = []
        self.tasks = TaskOwner(lambda _name, error: self.failures.append(error))

    async def create(self, *names: str, **fields: Any) -> None:
        for name in names:
            await self.client.create(PODS, pod_manifest(name, **fields), namespace="default")

    def pod(self, name: str) -> Pod:
        record = self.server.store.shelf("pods").get(("default", name))
        assert record is not None, name
        return from_dict(Pod, record.decode())

    async def settled(self, name: str) -> tuple[str, str]:
        """Return the node a pod got, or the reason and message of its condition."""
        async with asyncio.timeout(SECONDS_MAX):
            while not self.pod(name).spec.node_name:
                for condition in self.pod(name).status.conditions:
                    if condition.type == "PodScheduled":
                        return condition.reason, condition.message
                await aio.sleep(0.01)
        return "", self.pod(name).spec.node_name


@asynccontextmanager
async def cluster(settings: str, *nodes: Manifest) -> AsyncIterator[Cluster]:
    made = Cluster(settings)
    try:
        agents = NodeAgents(
            made.client, [complete(node) for node in nodes], clock=made.clock, streams=made.streams
        )
        made.tasks.spawn(agents.run(), name="agents")
        await agents.registered.wait()
        made.tasks.spawn(made.scheduler.run(), name="scheduler")
        await made.scheduler.ready.wait()
        yield made
        assert made.failures == []
        made.scheduler.core.cache.validate()
        made.scheduler.core.queue.validate()
    finally:
        await made.tasks.cancel_all()
        made.server.close()


PLANNED = node_manifest("planned", labels={MAINTENANCE: "planned"})
GREEN = node_manifest("green", labels={POWER: "green"})
PLAIN = [node_manifest(f"plain-{number}") for number in range(4)]


async def test_the_example_extender_filters_scores_and_keeps_its_connection() -> None:
    with extender() as process:
        settings = f"{{urlPrefix: '{process.url}', {VERBS}}}"
        async with cluster(settings, PLANNED, GREEN, *PLAIN) as made:
            names = [f"p{number}" for number in range(8)]
            await made.create(*names)
            assert {await made.settled(name) for name in names} == {("", "green")}
            assert process.stats() == {"calls": {"filter": 8, "prioritize": 8}, "connections": 1}
            await made.create("only", node_selector={MAINTENANCE: "planned"})
            reason, message = await made.settled("only")
            assert reason == "Unschedulable"
            assert message.startswith(
                "0/6 nodes are available: 1 maintenance of planned is planned, 5 node(s) didn't "
                "match Pod's node affinity/selector. "
            )
        assert process.stats()["connections"] == 1


async def test_the_example_extender_serves_https_to_clients_that_trust_its_authority(
    tmp_path: Path,
) -> None:
    authority = Authority(SystemClock())
    pair = authority.server_pair()
    (tmp_path / "tls.crt").write_bytes(pair.certificate)
    (tmp_path / "tls.key").write_bytes(pair.key)
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    files = ("--tls-cert-file", str(tmp_path / "tls.crt"))
    with extender(*files, "--tls-private-key-file", str(tmp_path / "tls.key")) as process:
        assert process.url.startswith("https://")
        for trust, expected in (
            (f"{{caFile: '{tmp_path}/ca.crt'}}", "green"),
            ("{}", "CERTIFICATE_VERIFY_FAILED"),
        ):
            settings = f"{{urlPrefix: '{process.url}', tlsConfig: {trust}, {VERBS}}}"
            async with cluster(settings, GREEN, *PLAIN) as made:
                await made.create("p")
                assert expected in (await made.settled("p"))[1]


def patience(fault: str) -> str:
    """Return the time limit of a call: on a busy machine an answer may take longer than 300 ms."""
    return "300ms" if fault == "slow" else "30s"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        pytest.param("slow", "POST URL/filter: silent for 0.3 s", id="slow"),
        pytest.param(
            "broken", "failed filter with extender at URL URL/filter, code 500", id="broken"
        ),
        pytest.param("garbage", "not JSON", id="garbage"),
        pytest.param("silent", "POST URL/filter: Server disconnected", id="silent"),
        pytest.param(
            "lying",
            'extender "URL" claims a filtered node "nowhere" which is not found in the input node '
            "list",
            id="lying",
        ),
    ],
)
async def test_one_that_fails_holds_its_pods_and_no_other_goes_wrong(
    fault: str, message: str
) -> None:
    """Pods it is not asked about are placed; those it is asked about are told why they wait."""
    with extender("--fault", fault, "--delay", "60") as process:
        managed = f"httpTimeout: {patience(fault)}, managedResources: [{{name: example.com/gpu}}]"
        settings = f"{{urlPrefix: '{process.url}', {VERBS}, {managed}}}"
        gpus = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
        container = {"name": "main", "image": "registry.example/app:1", "resources": gpus}
        with_gpus = node_manifest("n1")
        for part in ("capacity", "allocatable"):
            with_gpus["status"][part]["example.com/gpu"] = "8"
        nodes = [with_gpus, *PLAIN]
        async with cluster(settings, *nodes) as made:
            await made.create("asked", containers=[container])
            await made.create("other")
            reason, text = await made.settled("asked")
            assert reason == "SchedulerError"
            assert text.replace(process.url, "URL").startswith(message)
            assert (await made.settled("other"))[0] == ""


@pytest.mark.parametrize("fault", ["slow", "broken", "garbage", "silent", "lying"])
async def test_one_that_may_be_ignored_is_gone_without(fault: str) -> None:
    with extender("--fault", fault, "--delay", "60") as process:
        ignored = f"httpTimeout: {patience(fault)}, ignorable: true"
        settings = f"{{urlPrefix: '{process.url}', {VERBS}, {ignored}}}"
        async with cluster(settings, PLANNED, GREEN) as made:
            await made.create("p")
            assert (await made.settled("p"))[0] == ""


async def test_the_one_that_lies_about_scores_moves_no_pod_to_where_it_is_not() -> None:
    with extender("--fault", "lying") as process:
        settings = f"{{urlPrefix: '{process.url}', prioritizeVerb: prioritize, weight: 10}}"
        async with cluster(settings, *PLAIN) as made:
            await made.create("p")
            reason, node_name = await made.settled("p")
            assert (reason, node_name[:5]) == ("", "plain")


async def test_the_one_that_says_it_has_bound_and_has_not_is_believed() -> None:
    """As by kube-scheduler, whose assumed pods never expire: the place is held, nobody else's."""
    with extender("--fault", "lying") as process:
        settings = f"{{urlPrefix: '{process.url}', bindVerb: bind}}"
        async with cluster(settings, *PLAIN) as made:
            await made.create("p")
            async with asyncio.timeout(SECONDS_MAX):
                while made.scheduler.facts.bound < 1:
                    await aio.sleep(0.02)
            assert made.pod("p").spec.node_name == ""
            assert made.scheduler.core.cache.counts().assumed_pods == 1
            assert process.stats()["calls"] == {"bind": 1}


async def test_victims_that_are_to_be_kept_are_kept() -> None:
    with extender() as process:
        settings = f"{{urlPrefix: '{process.url}', {VERBS}}}"
        nodes = [node_manifest(name, cpu="4") for name in ("n1", "n2")]
        async with cluster(settings, *nodes) as made:
            for node_name, labels in (("n1", {KEEP: "true"}), ("n2", {})):
                selector = {"kubernetes.io/hostname": node_name}
                await made.create(f"on-{node_name}", cpu="3", labels=labels, node_selector=selector)
                assert await made.settled(f"on-{node_name}") == ("", node_name)
            await made.create("vip", cpu="3", priorityClassName="system-cluster-critical")
            async with asyncio.timeout(SECONDS_MAX):
                while not made.pod("vip").spec.node_name:
                    await aio.sleep(0.02)
            assert made.pod("vip").spec.node_name == "n2"
            assert made.pod("on-n1").metadata.deletion_timestamp is None
        assert process.stats()["calls"]["preempt"] >= 1


# --- the rules alone --------------------------------------------------------------------------


def _known(nodes: Any, pods: Any = None) -> Any:
    class Known:
        def __init__(self) -> None:
            self.nodes, self.pods, self.changes = nodes, pods or {}, 0
            self.bound: list[tuple[str, str, str, str]] = []

        async def synced(self) -> None:
            pass

        async def bind(self, pod: Any, node_name: str) -> None:
            self.bound.append((pod.namespace, pod.name, pod.uid, node_name))

    return Known()


async def test_nodes_that_are_left_are_sent_back_whole() -> None:
    nodes = [
        {"metadata": {"name": "a", "annotations": {"x": "y"}}, "spec": {"podCIDR": "10.0.0.0/24"}},
        {"metadata": {"name": "b", "labels": {MAINTENANCE: "now"}}},
    ]
    body = json.dumps({"Pod": {}, "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None})
    answer = await ExampleExtender().filter([body.encode()])
    assert json.loads(answer) == {
        "Nodes": {"metadata": {}, "items": nodes[:1]},
        "FailedNodes": {"b": "maintenance of b is now"},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }


async def test_names_are_looked_up_in_the_cluster() -> None:
    rules = ExampleExtender(_known({"a": {POWER: "green"}, "b": {MAINTENANCE: "now"}}))
    body = json.dumps({"Pod": {}, "Nodes": None, "NodeNames": ["b", "a", "new"]}).encode()
    assert json.loads(await rules.filter([body])) == {
        "NodeNames": ["a", "new"],
        "FailedNodes": {"b": "maintenance of b is now"},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }
    assert json.loads(await rules.prioritize([body])) == [
        {"Host": "b", "Score": 0},
        {"Host": "a", "Score": 10},
        {"Host": "new", "Score": 0},
    ]


def _question(pod: str, nodes: Any, *, spaces: bool = False, pod_last: bool = False) -> bytes:
    names = isinstance(nodes[0], str)
    asked = {"Nodes": None if names else {"items": nodes}, "NodeNames": nodes if names else None}
    about = {"Pod": {"metadata": {"name": pod}}}
    body = {**asked, **about} if pod_last else {**about, **asked}
    return json.dumps(body, separators=None if spaces else (",", ":")).encode()


_GREEN = {"metadata": {"name": "a", "labels": {POWER: "green"}}}
_PLAIN = {"metadata": {"name": "a"}}
_OTHER = {"metadata": {"name": "b", "labels": {MAINTENANCE: "now"}}}


@pytest.mark.parametrize(
    "questions",
    [
        pytest.param(
            [_question("p", [_GREEN, _OTHER]), _question("pod-2", [_GREEN, _OTHER])],
            id="the same nodes for another pod",
        ),
        pytest.param(
            [_question("p", [_GREEN, _OTHER]), _question("p", [_PLAIN, _OTHER])],
            id="a node that has changed, before others that have not",
        ),
        pytest.param(
            [_question("p", [_GREEN, _OTHER]), _question("p", [_OTHER]), _question("p", [_GREEN])],
            id="fewer nodes",
        ),
        pytest.param(
            [_question("p", ["a", "b"]), _question("p", ["b"]), _question("p", ["a", "b"])],
            id="names",
        ),
        pytest.param(
            [_question("p", [_GREEN], spaces=True), _question("p", [_PLAIN], spaces=True)],
            id="written with spaces",
        ),
        pytest.param(
            [_question("p", [_GREEN], pod_last=True), _question("p", [_PLAIN], pod_last=True)],
            id="the pod told last",
        ),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 40, 1000])
async def test_a_cached_question_does_not_change_the_next_answer(
    questions: list[bytes], size: int
) -> None:
    def cut(body: bytes) -> list[bytes]:
        return [body[start : start + size] for start in range(0, len(body), size)]

    known = {"a": {POWER: "green"}, "b": {MAINTENANCE: "now"}}
    rules = ExampleExtender(_known(known))
    for question in questions:
        fresh = ExampleExtender(_known(known))
        for verb in ("filter", "prioritize"):
            assert await getattr(rules, verb)(cut(question)) == await getattr(fresh, verb)(
                [question]
            )


async def test_a_label_that_changes_in_the_cluster_changes_the_answer() -> None:
    known = _known({"a": {}})
    rules, body = ExampleExtender(known), _question("p", ["a"])
    assert json.loads(await rules.prioritize([body])) == [{"Host": "a", "Score": 0}]
    known.nodes["a"], known.changes = {POWER: "green"}, 1
    assert json.loads(await rules.prioritize([body])) == [{"Host": "a", "Score": 10}]


async def test_victims_told_by_uid_are_looked_up_in_the_cluster() -> None:
    rules = ExampleExtender(_known({}, {"u1": {KEEP: "true"}, "u2": {}}))
    asked = {name: {"Pods": [{"UID": uid}]} for name, uid in (("a", "u1"), ("b", "u2"))}
    answer = await rules.preempt([json.dumps({"NodeNameToMetaVictims": asked}).encode()])
    kept = {"b": {"Pods": [{"UID": "u2"}], "NumPDBViolations": 0}}
    assert json.loads(answer) == {"NodeNameToMetaVictims": kept}


async def test_the_example_extender_binds_the_pod_it_is_asked_to_bind() -> None:
    known = _known({})
    body = {"PodName": "p", "PodNamespace": "ns", "PodUID": "u", "Node": "n"}
    assert json.loads(await ExampleExtender(known).bind([json.dumps(body).encode()])) == {
        "Error": ""
    }
    assert known.bound == [("ns", "p", "u", "n")]


def test_the_configuration_beside_it_is_one() -> None:
    (found,) = load_config(ROOT / "examples/extender/scheduler.yaml").scheduler.extenders
    assert (found.url_prefix, found.weight, found.timeout_seconds) == (
        "http://127.0.0.1:8888",
        10,
        2,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ("--tls-cert-file", "x"),
            "--tls-cert-file and --tls-private-key-file are given both or not at all",
            id="half a pair",
        ),
        pytest.param(
            ("--tls-cert-file", "/nowhere", "--tls-private-key-file", "/nowhere"),
            "/nowhere, /nowhere: No such file or directory",
            id="no such file",
        ),
    ],
)
def test_an_unusable_option_of_the_example_extender_is_reported(
    arguments: tuple[str, ...], message: str
) -> None:
    done = CliRunner().invoke(main, ["example-extender", *arguments])
    assert (done.exit_code, done.stderr) == (2, f"error: {message}\n")
