"""What a pod requests: tables for the rules, and a naive reference for random pods."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.meta import Condition
from moorage.api.pod import Container, ContainerStatus, Pod, PodSpec, PodStatus, Resources
from moorage.api.quantity import NANO
from moorage.api.requests import non_zero_requests, pod_requests, qos_class, to_units

INFEASIBLE = Condition(type="PodResizePending", status="True", reason="Infeasible")
DEFERRED = Condition(type="PodResizePending", status="True", reason="Deferred")


def box(
    name: str = "c", *, sidecar: bool = False, limits: Any = None, **requests: Any
) -> Container:
    return Container(
        name=name,
        restart_policy="Always" if sidecar else "",
        resources=Resources(requests=_names(requests), limits=_names(limits or {})),
    )


def in_force(name: str = "c", *, allocated: Any = None, **requests: Any) -> ContainerStatus:
    return ContainerStatus(
        name=name,
        resources=Resources(requests=_names(requests)),
        allocated_resources=_names(allocated or {}),
    )


def pod(
    *containers: Container,
    init: Iterable[Container] = (),
    statuses: Iterable[ContainerStatus] = (),
    conditions: Iterable[Condition] = (),
    **spec: Any,
) -> Pod:
    return Pod(
        spec=PodSpec(containers=list(containers), init_containers=list(init), **spec),
        status=PodStatus(container_statuses=list(statuses), conditions=list(conditions)),
    )


def _names(requests: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("__", "/").replace("_", "-"): q for name, q in requests.items()}


def _milli(requests: Mapping[str, int]) -> dict[str, Fraction]:
    return {name: Fraction(nano, 10**6) for name, nano in requests.items()}


WHOLE = Resources(requests={"cpu": "2"})


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        pytest.param(pod(), {}, id="no containers ask for nothing"),
        pytest.param(pod(box(cpu="100m"), box(cpu="0.2")), {"cpu": 300}, id="containers add up"),
        pytest.param(
            pod(box(cpu="100u"), box(cpu="100u")),
            {"cpu": Fraction(2, 10)},
            id="sums are exact before rounding",
        ),
        pytest.param(pod(box(cpu=0)), {"cpu": 0}, id="an explicit zero is present"),
        pytest.param(
            pod(box(cpu="1"), init=[box(cpu="3")]),
            {"cpu": 3000},
            id="an init container counts where it is larger",
        ),
        pytest.param(
            pod(box(cpu="1"), init=[box(cpu="2", sidecar=True)]),
            {"cpu": 3000},
            id="a sidecar runs beside the containers",
        ),
        pytest.param(
            pod(box(cpu="1"), init=[box(cpu="2", sidecar=True), box(cpu="4")]),
            {"cpu": 6000},
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            pod(box(cpu="1"), init=[box(cpu="4"), box(cpu="2", sidecar=True)]),
            {"cpu": 4000},
            id="and not beside those after it",
        ),
        pytest.param(
            pod(box(cpu="1"), init=[box(memory="1k")]),
            {"cpu": 1000, "memory": 1_000_000},
            id="resources are compared one by one",
        ),
        pytest.param(
            pod(box(cpu="1"), overhead={"cpu": "100m", "memory": "1"}),
            {"cpu": 1100, "memory": 1000},
            id="overhead comes on top, for new resources too",
        ),
        pytest.param(
            pod(box(cpu="1", example__x="1"), resources=WHOLE),
            {"cpu": 2000, "example/x": 1000},
            id="pod-level requests replace those of containers",
        ),
        pytest.param(
            pod(box(cpu="3"), resources=WHOLE, overhead={"cpu": "1"}),
            {"cpu": 3000},
            id="even larger ones, with overhead on top",
        ),
        pytest.param(
            pod(box(cpu="1"), resources=Resources(limits={"cpu": "5"})),
            {"cpu": 1000},
            id="pod-level limits alone do nothing",
        ),
        pytest.param(
            pod(box(cpu="1"), resources=Resources(requests={"example.com/x": "5"})),
            {"cpu": 1000},
            id="nor does a resource that cannot be set for the pod",
        ),
        pytest.param(
            pod(box(cpu="1"), statuses=[in_force(cpu="2")]),
            {"cpu": 2000},
            id="a container shrinking still counts what it holds",
        ),
        pytest.param(
            pod(box(cpu="1"), statuses=[in_force(cpu="2", allocated={"cpu": "3"})]),
            {"cpu": 3000},
            id="or what was allocated to it",
        ),
        pytest.param(
            pod(box(cpu="4"), statuses=[in_force(cpu="2")], conditions=[DEFERRED]),
            {"cpu": 4000},
            id="a growing one counts what it wants",
        ),
        pytest.param(
            pod(box(cpu="4"), statuses=[in_force(cpu="2")], conditions=[INFEASIBLE]),
            {"cpu": 2000},
            id="unless that is infeasible",
        ),
        pytest.param(
            pod(box(cpu="4"), statuses=[in_force(cpu="2")], conditions=[DEFERRED, INFEASIBLE]),
            {"cpu": 4000},
            id="the first pending condition decides",
        ),
        pytest.param(
            pod(box(cpu="4"), statuses=[ContainerStatus(name="c", allocated_resources={"cpu": 9})]),
            {"cpu": 4000},
            id="a status without resources says nothing",
        ),
        pytest.param(
            pod(box(cpu="4"), statuses=[in_force("other", cpu="9")]),
            {"cpu": 4000},
            id="nor does that of another container",
        ),
        pytest.param(
            pod(init=[box("i", cpu="1")], statuses=[in_force("i", cpu="9")]),
            {"cpu": 1000},
            id="an ordinary init container is not resized",
        ),
        pytest.param(
            pod(init=[box("i", cpu="1", sidecar=True)], statuses=[in_force("i", cpu="9")]),
            {"cpu": 9000},
            id="a sidecar is",
        ),
    ],
)
def test_requests_of_a_pod_on_a_node(subject, expected):
    assert _milli(pod_requests(subject, use_status=True, pod_level=True)) == expected


def test_requests_can_leave_out_the_status_and_the_pod_level():
    subject = pod(box(cpu="1"), statuses=[in_force(cpu="5")], resources=WHOLE)
    assert _milli(pod_requests(subject, use_status=False, pod_level=False)) == {"cpu": 1000}
    assert _milli(pod_requests(subject, use_status=True, pod_level=False)) == {"cpu": 5000}
    assert _milli(pod_requests(subject, use_status=False, pod_level=True)) == {"cpu": 2000}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param([], 4000, id="the most of wanted, actuated and allocated"),
        pytest.param([INFEASIBLE], 3000, id="without the wanted where infeasible"),
    ],
)
def test_pod_level_resize(conditions, expected):
    subject = Pod(
        spec=PodSpec(containers=[box(cpu="9")], resources=Resources(requests={"cpu": "4"})),
        status=PodStatus(
            resources=Resources(requests={"cpu": "2", "memory": "1"}),
            allocated_resources={"cpu": "3"},
            conditions=conditions,
        ),
    )
    assert _milli(pod_requests(subject, use_status=True, pod_level=True)) == {"cpu": expected}


MIB = 2**20


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        pytest.param(pod(), (0, 0), id="no containers, no defaults"),
        pytest.param(pod(box()), (100, 200 * MIB), id="both defaults"),
        pytest.param(pod(box(), box(cpu="1")), (1100, 400 * MIB), id="for each container"),
        pytest.param(pod(box(cpu="0", memory="0")), (0, 0), id="an explicit zero stays"),
        pytest.param(
            pod(box(cpu="1"), box(), resources=Resources(requests={"memory": "1Mi"})),
            (1000, MIB),
            id="with pod-level requests a resource present in the total takes no default",
        ),
        pytest.param(
            pod(box(), box(), resources=Resources(requests={"memory": "1Mi"})),
            (200, MIB),
            id="one absent from it does, for each container",
        ),
        pytest.param(
            pod(
                box(),
                resources=Resources(requests={"memory": "1Mi"}),
                overhead={"cpu": "0"},
            ),
            (0, MIB),
            id="overhead of zero makes it present",
        ),
        pytest.param(pod(box(cpu="1u", memory="1m")), (1, 1), id="totals are rounded up"),
    ],
)
def test_non_zero_requests_of_a_running_pod(subject, expected):
    assert non_zero_requests(subject) == expected


def test_non_zero_defaults_of_the_fit_scorer():
    subject = pod(box(), init=[box(memory="1Gi")], resources=WHOLE)
    assert pod_requests(subject, use_status=False, pod_level=False, non_zero=True) == {
        "cpu": NANO // 10,
        "memory": 2**30 * NANO,
    }


def test_units_are_milli_for_cpu_and_whole_for_all_else():
    assert [to_units(name, NANO + 1) for name in ("cpu", "memory", "example.com/x")] == [1001, 2, 2]


QUANTITIES = st.sampled_from(["0", "100u", "250m", "1", "3", "1Ki", "2k"])
REQUESTS = st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/x"]), QUANTITIES)
VALUES = {
    "0": Fraction(0),
    "100u": Fraction(1, 10**4),
    "250m": Fraction(1, 4),
    "1": Fraction(1),
    "3": Fraction(3),
    "1Ki": Fraction(1024),
    "2k": Fraction(2000),
}


@st.composite
def pods(draw):
    def containers(restart: list[str]) -> list[Container]:
        return [
            Container(
                name=f"{restart[-1]}{i}",
                resources=Resources(requests=draw(REQUESTS)),
                restart_policy=draw(st.sampled_from(restart)),
            )
            for i in range(draw(st.integers(0, 3)))
        ]

    whole = draw(st.none() | st.builds(lambda r: Resources(requests=r), REQUESTS))
    return Pod(
        spec=PodSpec(
            containers=containers([""]),
            init_containers=containers(["", "Always"]),
            overhead=draw(REQUESTS),
            resources=whole,
        )
    )


def _reference(subject: Pod, name: str) -> Fraction | None:
    """One resource at a time: look at every moment of the pod's life and take the most."""
    spec = subject.spec
    overhead = VALUES[str(spec.overhead[name])] if name in spec.overhead else None

    def of(container: Container) -> list[Fraction]:
        requests = container.resources.requests
        return [VALUES[str(requests[name])]] if name in requests else []

    moments = []
    sidecars: list[Fraction] = []
    for container in spec.init_containers:
        moments.append(sidecars + of(container))
        if container.restart_policy == "Always":
            sidecars = sidecars + of(container)
    moments.append(sidecars + [x for c in spec.containers for x in of(c)])
    present = [sum(moment, Fraction(0)) for moment in moments if moment]
    total = max(present) if present else None
    if spec.resources is not None and name in spec.resources.requests and name in ("cpu", "memory"):
        total = VALUES[str(spec.resources.requests[name])]
    if overhead is not None:
        total = overhead + (total or 0)
    return total


@given(pods())
def test_requests_equal_the_naive_reference(subject):
    total = pod_requests(subject, use_status=True, pod_level=True)
    found = {name: Fraction(nano, NANO) for name, nano in total.items()}
    expected = {name: _reference(subject, name) for name in ("cpu", "memory", "example.com/x")}
    assert found == {name: amount for name, amount in expected.items() if amount is not None}


FULL: dict[str, Any] = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        pytest.param(pod(box()), "BestEffort", id="nothing asked for"),
        pytest.param(pod(box(cpu="0")), "BestEffort", id="zero is nothing"),
        pytest.param(pod(box(example__x="1")), "BestEffort", id="only cpu and memory count"),
        pytest.param(pod(box(cpu="1")), "Burstable", id="a request without limit"),
        pytest.param(pod(box(limits=FULL, **FULL)), "Guaranteed", id="requests are the limits"),
        pytest.param(
            pod(box(limits=FULL, cpu="1000m", memory="1024Mi")), "Guaranteed", id="by value"
        ),
        pytest.param(
            pod(box(limits=FULL, **FULL), box()), "Burstable", id="one container without limits"
        ),
        pytest.param(
            pod(box(limits=FULL, **FULL), init=[box()]), "Burstable", id="an init container too"
        ),
        pytest.param(pod(box(limits={"cpu": "1"}, cpu="1")), "Burstable", id="one resource only"),
        pytest.param(
            pod(box(), resources=Resources(requests=dict(FULL), limits=dict(FULL))),
            "Guaranteed",
            id="pod-level resources stand in for the containers'",
        ),
        pytest.param(
            pod(box(limits=FULL, **FULL), resources=WHOLE),
            "Burstable",
            id="also where the containers would be guaranteed",
        ),
    ],
)
def test_quality_of_service(subject, expected):
    assert qos_class(subject) == expected
