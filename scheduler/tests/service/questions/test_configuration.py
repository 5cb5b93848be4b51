"""The question which configuration is in force: what it answers is read as the same configuration.

Not covered: who uses it (`tests/cli/test_served_configuration.py`).
"""

from __future__ import annotations

import msgspec
import pytest

from moorage.base.clock import ManualClock
from moorage.config.feature_gates import parse_feature_gates
from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration
from moorage.config.written import documents
from moorage.service.questions.configuration import (
    ConfigurationAnswer,
    configuration_of,
    configuration_question,
)
from moorage_sandbox.testing.builders import node_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

OWN = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3}]}}
- schedulerName: other
---
apiVersion: moorage.dev/v1alpha1
kind: MoorageConfiguration
profiles: [{schedulerName: other, groupMode: permit}]
"""


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(LoadedConfiguration(), id="the defaults"),
        pytest.param(parse_config(OWN, source="own"), id="both documents"),
        pytest.param(
            LoadedConfiguration(
                gates=parse_feature_gates("GenericWorkload=true,GangScheduling=true", "1.36"),
                unschedulable_ns_max=90_000_000_000,
            ),
            id="flags of the command line",
        ),
    ],
)
def test_the_answer_is_read_as_the_configuration_in_force(config: LoadedConfiguration) -> None:
    clock = ManualClock()

    async def main() -> ConfigurationAnswer:
        async with VirtualCluster(clock, nodes=[node_manifest("n")]) as cluster:
            question = configuration_question(cluster.scheduler, clock, lambda: config, ("a.py:b",))
            answer = await question.ask({})
            assert isinstance(answer, ConfigurationAnswer)
            return answer

    answer = msgspec.json.decode(
        msgspec.json.encode(run_virtual(main(), clock)), type=ConfigurationAnswer
    )
    found = configuration_of(answer, "the scheduler")
    assert documents(found) == documents(config)
    assert (found.gates, found.unschedulable_ns_max) == (config.gates, config.unschedulable_ns_max)
    assert (answer.plugins, bool(answer.cluster)) == (("a.py:b",), True)
