"""Random configurations of many plugins: `config check` tells their faults without a traceback.

Covers the reading, the checks and the construction of plugins; `test_fuzz` covers other files.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from moorage.api.yaml_text import write_yaml
from moorage.base.errors import UsageError
from moorage.base.rng import Random
from moorage.cli.checking import check_text
from moorage.config.load import parse_config
from moorage.config.written import documents
from tests.attack.fuzz import RUNS, SEED, draws, mutated_bytes, mutated_value

EXTENDER = {
    "urlPrefix": "http://a.example/scheduler",
    "filterVerb": "filter",
    "prioritizeVerb": "score",
    "preemptVerb": "preempt",
    "bindVerb": "bind",
    "weight": 2,
    "enableHTTPS": False,
    "httpTimeout": "5s",
    "nodeCacheCapable": True,
    "ignorable": True,
    "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
    "tlsConfig": {"insecure": True, "serverName": "a", "certData": "YQ==", "keyData": "YQ=="},
}
OWN_PROFILE = {
    "schedulerName": "default-scheduler",
    "groupMode": "trial",
    "groupOrders": 3,
    "completeGroups": True,
    "holdBackAfterSeconds": 1.5,
}


PLUGINS = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: more
  plugins:
    multiPoint:
      enabled:
      - {name: NodeResourcesAllocatable, weight: 2}
      - {name: CapacityScheduling}
      - {name: PreemptionToleration}
      - {name: NodeResourceTopologyMatch}
      - {name: TargetLoadPacking}
      - {name: LoadVariationRiskBalancing}
      - {name: GpuShare}
      - {name: GpuPacking}
      disabled: [{name: DefaultPreemption}]
    preFilter: {enabled: [{name: Coscheduling}]}
    permit: {enabled: [{name: Coscheduling}]}
"""


@cache
def _texts() -> tuple[str, ...]:
    """Return both documents as JSON, with every default and every setting of our own."""
    scheduler, own = documents(parse_config(PLUGINS))
    scheduler["percentageOfNodesToScore"] = 50
    scheduler["clientConnection"] |= {"qps": 50, "burst": 100, "kubeconfig": "a"}
    own["profiles"] = [OWN_PROFILE]
    return json.dumps(scheduler | {"extenders": [EXTENDER]}), json.dumps(own)


def test_the_configuration_that_is_changed_has_no_fault_itself():
    scheduler = json.loads(_texts()[0]) | {"extenders": []}
    assert check_text(json.dumps(scheduler)).faults == []
    assert check_text(_texts()[1]).faults == []


def _changed(rng: Random) -> str:
    """Return the text of a configuration with one to three faults in its values or its bytes."""
    bodies: list[Any] = [json.loads(text) for text in _texts()]
    if rng.random() < 0.5:
        del bodies[0]["extenders"]
    form = rng.randrange(4)
    if form == 0:
        text = "\n---\n".join(write_yaml(body) for body in bodies)
        return mutated_bytes(text.encode(), rng).decode(errors="replace")
    place = rng.randrange(2)
    for _ in range(form):
        bodies[place] = mutated_value(bodies[place], rng)
    return json.dumps(bodies[place]) if rng.random() < 0.5 else f"---\n{json.dumps(bodies[place])}"


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        pytest.param("checked", RUNS // 3, id="a few"),
        pytest.param("checked for long", RUNS * 4, id="many", marks=pytest.mark.slow),
    ],
)
def test_faults_of_a_random_configuration_are_told_without_a_traceback(name: str, runs: int):
    for run, rng in draws(name, runs):
        text = _changed(rng)
        try:
            found = check_text(text)
            "\n".join(found.faults).encode()  # half of a surrogate pair could not be printed
        except UsageError as error:
            str(error).encode()
        except Exception as error:
            pytest.fail(f"seed {SEED}, {name}, run {run}: {type(error).__name__}: {error}\n{text}")
