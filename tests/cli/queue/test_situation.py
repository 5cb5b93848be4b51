"""500 nodes and 189 waiting pods, a gang of 64 among them: rows that fit 80 columns.

A cluster in virtual time. The rows are those of the question over HTTP, printed as the command
prints them.
"""

from __future__ import annotations

from typing import Any

from moorage.cli.queue.text import folded_lines
from moorage.service.questions.folding.folded_queue import folded_answer
from moorage.service.questions.folding.folds import fold
from moorage.service.questions.queue import queue_answer
from moorage_sandbox.testing.builders import Manifest, pod_manifest
from tests.scenarios.gangs import coscheduling, nodes, of_object, play, pod_group

NODES = 500
MINUTE_NS = 60 * 10**9


def replicas(owner: str, count: int, **fields: Any) -> list[Manifest]:
    """Return the pods of a ReplicaSet that a Deployment made."""
    pods = []
    for index in range(count):
        pod = pod_manifest(f"{owner}-7d4b-{index}", labels={"pod-template-hash": "7d4b"}, **fields)
        pod["metadata"]["ownerReferences"] = [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": f"{owner}-7d4b",
                "uid": owner,
                "controller": True,
            }
        ]
        pods.append(pod)
    return pods


TABLE = """\
PODS  OWNER                      QUEUE          OLDEST  REASON
  99  default/deployment/api     unschedulable  10m     InsufficientCPU
      0/500 nodes are available: 500 Insufficient cpu. no new claims to dealloc…
  64  default/pod/train-0, …     unschedulable  10m     InsufficientCPU
      group default/train: 0/500 nodes are available: 500 Insufficient cpu. no…
  26  default/deployment/search  unschedulable  10m     NoMatchingNode
      0/500 nodes are available: 500 node(s) didn't match Pod's node affinity/s…

PLACED  GROUP          MINIMUM  WAITING  GATED  AT PERMIT
     0  default/train  64       64       0      0
        0/500 nodes are available: 500 Insufficient cpu. no new claims to deall…"""


def test_189_waiting_pods_are_a_few_rows_of_80_columns() -> None:
    async def scenario(live: Any) -> None:
        await live.create_objects(
            *replicas("api", 99, cpu="3"),
            *replicas("search", 26, cpu="1", nodeSelector={"disk": "ssd"}),
            pod_group("train", least=64),
            *(of_object(f"train-{index}", of="train", cpu="3") for index in range(64)),
        )
        core = live.scheduler.core
        await live.until(
            lambda: core.queue.counts().unschedulable + core.queue.counts().backoff == 189
        )
        answer = queue_answer(
            core, now_ns=live.clock.now_ns() + 10 * MINUTE_NS, limit=5000, scheduling=True
        )
        folded = folded_answer(answer, {"by": "owner"})
        lines = folded_lines(folded, fold(folded.folds), width=80)
        assert "\n".join(lines) == TABLE
        assert max(map(len, lines)) <= 80

    play(scenario, cluster=nodes(NODES, cpu="2"), config=coscheduling())
