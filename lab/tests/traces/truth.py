"""Random scenarios, each simulated and played in a whole sandbox in virtual time.

`played` has the nodes that pods got in the sandbox: API server, controllers, node agents and
scheduler. `simulated` has the nodes that they got in a simulation of the same pods, at the same
times, with the same seed. Pods come and end at different moments, so that a race seldom decides.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from moorage.api.resources import CORE_EVENTS, PODS
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.base.errors import NotFoundError
from moorage.base.rng import Random, Streams
from moorage.nodeshapes.annotations import RUN_SECONDS
from moorage.nodeshapes.templates import complete
from moorage_lab.traces.in_python import simulate
from moorage_sandbox.controllers.workloads import WorkloadControllers
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

Places = dict[str, str]
"""The node of each pod by name; pods that got none are not in it."""

_ZONES = ("a", "b", "c")
_CLASSES = {"low": -10, "high": 100}
# Between two arrivals, seconds.
_STEP = 4.0
_REST_SECONDS = 120.0


class Scene:
    """A scenario: nodes, pods with the seconds at which they come, and a node that fails."""

    def __init__(self, seed: int) -> None:
        rng = Streams(seed).stream("scenario")
        self.seed = seed
        self.nodes = [complete(_node(rng, f"n{n}")) for n in range(rng.randint(2, 6))]
        count = rng.randint(8, 20)
        self.pods = [(0.5 + _STEP * n, _pod(rng, n)) for n in range(count)]
        self.end = _STEP * count + _REST_SECONDS
        self.fails: tuple[str, float] | None = None
        if rng.random() < 0.3 and len(self.nodes) > 2:
            name: Any = rng.choice(self.nodes)["metadata"]
            # In the middle between two arrivals.
            self.fails = str(name["name"]), _STEP * (count // 2) + 1.7
        self.classes = [
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
            }
            for name, value in _CLASSES.items()
        ]


def simulated(scene: Scene, folder: Path) -> Places:
    """Return the nodes that the pods get in a simulation."""
    nodes = [{**each, "apiVersion": "v1", "kind": "Node"} for each in scene.nodes]
    (folder / "nodes.json").write_text(_list([*scene.classes, *nodes]))
    pods = []
    for number, (at, pod) in enumerate(scene.pods):
        file = folder / f"pod-{number}.json"
        file.write_text(json.dumps(pod))
        pods.append({"file": str(file), "arrivals": {"after": f"{at}s"}})
    failures = [] if scene.fails is None else [{"node": scene.fails[0], "at": f"{scene.fails[1]}s"}]
    found = simulate(
        {
            "nodes": [{"file": str(folder / "nodes.json")}],
            "pods": pods,
            "failures": failures,
            "seeds": [scene.seed],
            "until": f"{scene.end}s",
        }
    )
    return {row["name"]: row["node"] for row in found.pods.rows if row["node"]}


def played(scene: Scene) -> Places | None:
    """Return the nodes that the pods get in a sandbox, or None where a race chose a victim."""
    clock = ManualClock()

    async def main() -> Places | None:
        nodes: list[Any] = scene.nodes
        async with VirtualCluster(
            clock,
            nodes=nodes,
            seed=scene.seed,
            renew_seconds=10_000,
            controllers=(WorkloadControllers,),
        ) as cluster:
            await cluster.create_objects(*scene.classes)
            return await _play(cluster, scene)

    return run_virtual(main(), clock)


async def _play(cluster: VirtualCluster, scene: Scene) -> Places | None:
    # A simulation begins with a whole second, and the queue looks at backoff once in a second.
    await aio.sleep(_STEP - cluster.clock.now_ns() / 1e9 % 1)
    begin = cluster.seconds
    acts: list[tuple[float, Manifest | None]] = [*scene.pods]
    if scene.fails is not None:
        acts.append((scene.fails[1], None))
    for at, pod in sorted(acts, key=lambda each: each[0]):
        await aio.sleep(begin + at - cluster.seconds)
        if pod is not None:
            await cluster.create_objects(pod)
        elif scene.fails is not None:
            await cluster.delete_node(scene.fails[0])
    await aio.sleep(begin + scene.end - cluster.seconds)
    return await _places(cluster)


async def _places(cluster: VirtualCluster) -> Places | None:
    """Return the nodes of pods, of those that are gone by the Events about their binding."""
    found: Places = {}
    seconds: dict[str, str] = {}
    evicted = []
    listed: Any = await cluster.client.list(CORE_EVENTS)
    for event in listed["items"]:
        name = event["involvedObject"]["name"]
        if event.get("reason") == "Scheduled":
            message = event.get("message") or event.get("note")
            found[name] = message.rpartition(" to ")[2]
            seconds[name] = event["eventTime"].partition(".")[0]
        elif event.get("reason") == "Preempted":
            evicted.append(name)
    starts = Counter((found[name], seconds[name]) for name in found)
    if any(starts[found[name], seconds[name]] > 1 for name in evicted):
        # Start times are whole seconds: which of two pods goes is decided by whose binding the
        # server answers first.
        return None
    try:
        pods: Any = await cluster.client.list(PODS)
    except NotFoundError:
        return found
    there = {each["metadata"]["name"]: each["spec"].get("nodeName") for each in pods["items"]}
    assert all(found.get(name) == node for name, node in there.items() if node), (found, there)
    return found


def _list(items: list[Any]) -> str:
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": items})


def _node(rng: Random, name: str) -> Manifest:
    taints = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}] if rng.random() < 0.2 else []
    labels = {"topology.kubernetes.io/zone": rng.choice(_ZONES)}
    return node_manifest(name, cpu=str(rng.randint(2, 6)), labels=labels, taints=taints)


def _pod(rng: Random, number: int) -> Manifest:
    name = f"p{number}"
    app = rng.choice(("x", "y", "z"))
    spec: Manifest = {"restartPolicy": "Never"}
    if rng.random() < 0.4:
        spec["priorityClassName"] = rng.choice(tuple(_CLASSES))
    if rng.random() < 0.2:
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    if rng.random() < 0.15:
        spec["nodeSelector"] = {"topology.kubernetes.io/zone": rng.choice(_ZONES)}
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    if rng.random() < 0.2:
        kind = rng.choice(("podAntiAffinity", "podAffinity"))
        spec["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    elif rng.random() < 0.25:
        when = rng.choice(("DoNotSchedule", "ScheduleAnyway"))
        spec["topologySpreadConstraints"] = [{**term, "maxSkew": 1, "whenUnsatisfiable": when}]
    cpu = rng.choice(("250m", "500m", "1", "1", "2", "3"))
    pod = pod_manifest(name, cpu=cpu, memory="256Mi", labels={"app": app}, **spec)
    if rng.random() < 0.5:
        # It ends in the middle between two arrivals, and at no moment at which another pod ends.
        seconds = _STEP * rng.randint(1, 12) + 0.9 + 0.02 * number
        pod["metadata"]["annotations"] = {RUN_SECONDS: f"{seconds:.2f}"}
    return pod
