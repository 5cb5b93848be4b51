"""Many pods created at once: bindings arrive in another order than that of the decisions.

The writes of the real scheduler take random times here. Next to itself a profile never differs, and
next to another one the differences are found all the same.
"""

from __future__ import annotations

import pytest

from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from scheduler.tests.shadow.clusters import Acts, at_once, config_of, shadowed
from scheduler.tests.shadow.test_differences import PACKING
from scheduler.tests.what_if.agreement import CLASSES

NODES = [node_manifest(f"n{number}", cpu="16", memory="64Gi") for number in range(20)]
QOS_SORT = """
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    profiles:
    - schedulerName: default-scheduler
      plugins:
        queueSort:
          enabled: [{name: QOSSort}]
          disabled: [{name: PrioritySort}]
"""


def pods(number: int, *, priorities: bool = False, cpu: tuple[str, ...] = ()) -> list[Manifest]:
    """Return pods of a few sizes, each size a workload of its own."""
    sizes, classes = cpu or ("50m", "100m", "200m"), sorted(CLASSES)
    return [
        pod_manifest(
            f"p{each:03}",
            cpu=sizes[each % len(sizes)],
            memory="64Mi",
            labels={"app": f"a{each % 3}"},
            priorityClassName=classes[each % len(classes)] if priorities else None,
        )
        for each in range(number)
    ]


@pytest.mark.parametrize("slowest_write", [0.3, 3.0])
def test_a_profile_next_to_itself_never_differs_about_500_pods_at_once(
    slowest_write: float,
) -> None:
    seen = shadowed(at_once(pods(500)), nodes=NODES, slowest_write=slowest_write)

    assert seen.report.differences == ()
    assert (seen.report.agree, seen.report.not_comparable) == (500, 0)


@pytest.mark.parametrize(
    "acts",
    [
        pytest.param(at_once(pods(200, priorities=True)), id="pods of three priorities"),
        pytest.param(
            at_once(pods(200), delete=[f"p{each:03}" for each in range(0, 200, 7)]),
            id="some are deleted while others are bound",
        ),
        pytest.param(at_once(pods(200, cpu=("1", "4", "9"))), id="not all of them fit"),
        pytest.param(
            at_once(pods(200, cpu=("1", "4", "9"), priorities=True)), id="some preempt others"
        ),
    ],
)
def test_what_cannot_be_ordered_is_no_difference(acts: Acts) -> None:
    seen = shadowed(acts, nodes=NODES, slowest_write=0.3)

    assert seen.report.differences == ()
    assert seen.report.agree > 50


def test_the_queue_sort_of_the_configuration_is_heeded() -> None:
    config = config_of(QOS_SORT)
    seen = shadowed(at_once(pods(200)), nodes=NODES, config=config, real=config, slowest_write=0.3)

    assert seen.report.differences == ()
    assert (seen.report.agree, seen.report.not_comparable) == (200, 0)


def test_another_profile_differs_about_most_of_200_pods_at_once() -> None:
    seen = shadowed(at_once(pods(200)), nodes=NODES, config=config_of(PACKING), slowest_write=0.3)

    assert seen.report.plugins == {"NodeResourcesFit": seen.report.differ}
    assert seen.report.differ > 150
    assert seen.report.not_comparable == 0
