"""Parts of a pod's shape: what is shared, what is told apart, what each part is compiled to."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from moorage.snapshot.pod_info import PodInfo, info_of
from moorage.snapshot.shape import (
    FEATURES,
    IMAGES,
    LABELS,
    NODE_AFFINITY,
    NODE_NAME,
    PORTS,
    RESOURCES,
    TOLERATIONS,
    PartKind,
    normalized_image,
    same_spec,
)
from scheduler.tests.snapshot.builders import pod, port

KINDS: tuple[PartKind[Any], ...] = (
    TOLERATIONS,
    NODE_AFFINITY,
    PORTS,
    RESOURCES,
    IMAGES,
    FEATURES,
    LABELS,
    NODE_NAME,
)


def claim(name: str) -> dict[str, object]:
    return {"name": "v", "persistentVolumeClaim": {"claimName": name}}


def image(reference: str) -> dict[str, object]:
    return {"name": reference, "image": {"reference": reference}}


def different(left, right) -> set[str]:
    a, b = PodInfo(left), PodInfo(right)
    return {kind.name for kind in KINDS if a.part(kind) is not b.part(kind)}


@pytest.mark.parametrize(
    ("left", "right", "parts"),
    [
        pytest.param(pod("p"), pod("q"), set(), id="replicas share everything"),
        pytest.param(
            pod("p", volumes=[claim("a")]),
            pod("q", volumes=[claim("b")]),
            set(),
            id="a claim name of its own changes only the volume parts",
        ),
        pytest.param(
            pod("p", volumes=[claim("a")]),
            pod("q"),
            set(),
            id="no claim at all changes only the volume parts",
        ),
        pytest.param(
            pod("p", volumes=[claim("a"), image("x")]),
            pod("q", volumes=[claim("b"), image("y")]),
            {"images"},
            id="an image is a volume and more",
        ),
        pytest.param(
            pod("p", volumes=[claim("a")], tolerations=[{"operator": "Exists"}]),
            pod("q", volumes=[claim("b")]),
            {"tolerations"},
            id="pods that differ in more than claims differ in other parts",
        ),
        pytest.param(
            pod("p", labels={"i": "0"}), pod("q", labels={"i": "1"}), {"labels"}, id="labels"
        ),
        pytest.param(
            pod("p"), pod("q", namespace="b"), {"labels"}, id="namespace goes with labels"
        ),
        pytest.param(pod("p"), pod("q", nodeName="n1"), {"node name"}, id="node name"),
        pytest.param(
            pod("p"),
            pod("q", tolerations=[{"operator": "Exists"}]),
            {"tolerations"},
            id="tolerations",
        ),
        pytest.param(
            pod("p"), pod("q", nodeSelector={"zone": "a"}), {"node affinity"}, id="node selector"
        ),
        pytest.param(
            pod("p"), pod("q", requests={"cpu": "1"}), {"resources"}, id="resource requests"
        ),
        pytest.param(pod("p"), pod("q", ports=[port(80)]), {"host ports"}, id="host ports"),
        pytest.param(
            pod("p"),
            pod("q", ports=[{"containerPort": 80}]),
            set(),
            id="a container port is no host port",
        ),
        pytest.param(
            pod("p", requests={"cpu": "1"}),
            pod(
                "q",
                requests={"cpu": "1"},
                status={
                    "containerStatuses": [
                        {"name": "c", "resources": {"requests": {"cpu": "2"}}, "image": "x"}
                    ]
                },
            ),
            {"resources"},
            id="requests during a resize come from the status",
        ),
        pytest.param(
            pod("p"), pod("q", hostNetwork=True, hostUsers=False), {"features"}, id="features"
        ),
        pytest.param(pod("p"), pod("q", priority=7), set(), id="priority is no part"),
    ],
)
def test_shape_parts_differ_exactly_where_two_pods_differ(left, right, parts):
    assert different(left, right) == parts


def test_pods_with_hostnames_of_their_own_have_the_same_spec():
    first, second = (pod(name, hostname=name, subdomain="db") for name in ("db-0", "db-1"))
    assert same_spec(first, second)


def test_a_part_has_an_id_of_its_own_for_good():
    first = PodInfo(pod("p", requests={"cpu": "17"})).part(RESOURCES).id
    gc.collect()
    again = PodInfo(pod("p", requests={"cpu": "17"})).part(RESOURCES).id
    assert again != first
    assert again > first


def test_parts_go_with_the_last_pod_that_uses_them():
    gc.collect()
    kinds: tuple[PartKind[Any], ...] = (RESOURCES, TOLERATIONS)
    before = [len(kind._parts) for kind in kinds]
    infos = [PodInfo(pod(f"p{i}", requests={"cpu": "4711m"})) for i in range(3)]
    for info in infos:
        for kind in kinds:
            info.part(kind)
    assert len(RESOURCES._parts) == before[0] + 1
    infos.pop()
    infos.clear()
    del info
    gc.collect()
    assert [len(kind._parts) for kind in kinds] == before


def test_a_part_outside_the_spec_is_never_shared_by_pods_that_differ_in_it():
    kind: PartKind[str | None] = PartKind(
        "tier",
        lambda each: each.metadata.annotations.get("tier"),
        lambda each: each.metadata.annotations.get("tier"),
    )
    gold, silver = (PodInfo(pod(n, annotations={"tier": n})) for n in ("gold", "silver"))
    other = PodInfo(pod("other", annotations={"tier": "gold", "x": "y"}))
    assert [i.part(kind).value for i in (gold, silver, other)] == ["gold", "silver", "gold"]
    assert gold.part(kind) is other.part(kind)
    assert gold.part(kind) is gold.part(kind)


@pytest.mark.parametrize(
    ("ports", "init", "expected"),
    [
        pytest.param([port(80)], [], (("0.0.0.0", "TCP", 80),), id="defaults"),
        pytest.param(
            [port(53, ip="10.0.0.1", protocol="UDP")],
            [],
            (("10.0.0.1", "UDP", 53),),
            id="as written",
        ),
        pytest.param([port(0), {"containerPort": 5}], [], (), id="no host port"),
        pytest.param(
            [port(80)],
            [{"name": "i", "ports": [port(1)]}],
            (("0.0.0.0", "TCP", 80),),
            id="init containers do not count",
        ),
        pytest.param(
            [port(80)],
            [{"name": "s", "restartPolicy": "Always", "ports": [port(90)]}],
            (("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 90)),
            id="sidecars count",
        ),
    ],
)
def test_host_ports(ports, init, expected):
    assert PodInfo(pod(ports=ports, initContainers=init)).part(PORTS).value == expected


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        pytest.param("app", "app:latest", id="no tag"),
        pytest.param("app:1", "app:1", id="tag"),
        pytest.param("host:5000/app", "host:5000/app:latest", id="a port is no tag"),
        pytest.param("host:5000/app:2", "host:5000/app:2", id="port and tag"),
        pytest.param("app@sha256:00", "app@sha256:00", id="digest"),
        pytest.param("", ":latest", id="empty"),
    ],
)
def test_image_names(name, normal):
    assert normalized_image(name) == normal


def test_images_of_a_pod_list_every_use():
    asked = pod(
        initContainers=[{"name": "i", "image": "init"}],
        containers=[{"name": "a", "image": "app:1"}, {"name": "b", "image": "app:1"}],
        volumes=[{"name": "v", "image": {"reference": "data"}}],
    )
    images = PodInfo(asked).part(IMAGES).value
    assert images.names == ("init:latest", "app:1", "app:1", "data:latest")
    assert images.containers == 3


RULE = {"restartPolicyRules": [{"action": "RestartAllContainers"}]}


@pytest.mark.parametrize(
    ("spec", "features"),
    [
        pytest.param({}, set(), id="nothing special"),
        pytest.param(
            {"hostNetwork": True, "hostUsers": False},
            {"UserNamespacesHostNetworkSupport"},
            id="user namespace on the host network",
        ),
        pytest.param({"hostNetwork": True}, set(), id="host users unset"),
        pytest.param({"hostUsers": False}, set(), id="no host network"),
        pytest.param(
            {"initContainers": [{"name": "i", **RULE}]},
            {"RestartAllContainersOnContainerExits"},
            id="an init container restarts all",
        ),
        pytest.param(
            {"containers": [{"name": "c", "restartPolicyRules": [{"action": "Restart"}]}]},
            set(),
            id="another restart rule",
        ),
    ],
)
def test_features_a_pod_requires(spec, features):
    assert PodInfo(pod(**spec)).part(FEATURES).value == features


def test_requests_in_their_four_variants():
    asked = pod(
        requests={"cpu": "1500m"},
        overhead={"memory": "1Mi"},
        resources={"requests": {"cpu": "2"}},
    )
    requests = PodInfo(asked).part(RESOURCES).value
    mib = 2**20
    assert requests.filter == {"cpu": 2000, "memory": mib}
    assert requests.score == {"cpu": 1500, "memory": 201 * mib}
    assert requests.balanced == {"cpu": 2000, "memory": mib}
    assert requests.nonzero == (2000, mib)  # overhead names memory: no default


def test_identity_of_a_pod_info():
    info = PodInfo(pod("p", priority=5))
    assert (info.key, info.uid, info.priority, repr(info)) == ("a/p", "uid-p", 5, "PodInfo(a/p)")
    assert PodInfo(pod("q")).priority == 0


def test_a_pod_met_lately_is_compiled_once_and_another_of_the_same_content_is_another():
    first, twin = pod("a"), pod("a")
    made = info_of(first)
    assert info_of(first) is made
    assert info_of(twin) is not made
    assert info_of(twin).pod is twin
    others = [pod(f"b{index}") for index in range(1000)]
    assert [info_of(each).pod for each in others] == others
    assert info_of(first).pod is first


def test_a_pod_tells_its_requests_in_cores_bytes_and_counts() -> None:
    info = PodInfo(
        pod(
            "p",
            requests={"cpu": "1500m", "memory": "1Mi", "example.com/gpu": "2"},
            overhead={"cpu": "250m"},
        )
    )
    amounts = [info.requests(name) for name in ("cpu", "memory", "example.com/gpu", "x.io/y")]
    assert amounts == [1.75, 2**20, 2, 0]


VERSIONS = {
    "no volumes": pod("p"),
    "a claim": pod("p", volumes=[claim("a")]),
    "another claim": pod("p", volumes=[claim("b")]),
    "a claim, and a node": pod("p", volumes=[claim("a")], nodeName="n"),
    "a claim, and a priority": pod("p", volumes=[claim("a")], priority=3),
    "a claim and an image": pod("p", volumes=[claim("a"), image("x")]),
    "a claim and another image": pod("p", volumes=[claim("a"), image("y")]),
}


@pytest.mark.parametrize("after", VERSIONS)
@pytest.mark.parametrize("before", VERSIONS)
def test_a_pod_compared_with_another_has_the_spec_that_it_has_alone(before, after):
    pods = {name: PodInfo(each) for name, each in VERSIONS.items()}
    found = pods[before].version(VERSIONS[after])
    assert found.spec_id == pods[after].spec_id
    assert found.part(IMAGES) is pods[after].part(IMAGES)


def test_specs_that_differ_in_more_than_the_node_are_told_apart():
    ids = {name: PodInfo(each) for name, each in VERSIONS.items()}
    assert ids["a claim"].spec_id == ids["a claim, and a node"].spec_id
    assert len({info.spec_id for info in ids.values()}) == len(ids) - 1
