"""Random nodes, pods and clusters, small in vocabulary so that things collide."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import NodeAffinity, Pod

KEYS = ("zone", "disk", "gen")
VALUES = ("a", "b", "1", "7", "x9", "007")
NODE_NAMES = tuple(f"n{i}" for i in range(6))
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
IMAGES = {"app:1": 700 * 2**20, "host:5000/base:latest": 90 * 2**20, "big@sha256:00": 3 * 2**30}
FEATURES = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "Other")
SCALARS = ("example.com/gpu", "vendor.io/nic", "hugepages-2Mi")

cpu = st.sampled_from(["0", "1m", "100m", "333m", "950m", "2", "4", "7"])
memory = st.sampled_from(["0", "1", "77M", "200Mi", "999Mi", "1Gi", "3Gi", "16Gi", "4000Ti"])
storage = st.sampled_from(["0", "1Gi", "10Gi", "500M"])
whole = st.sampled_from(["0", "1", "2", "5"])


def quantities(*, pods: bool) -> st.SearchStrategy[dict[str, str]]:
    optional: dict[str, st.SearchStrategy[str]] = {
        "cpu": cpu,
        "memory": memory,
        "ephemeral-storage": storage,
        **dict.fromkeys(SCALARS, whole),
    }
    required = {"pods": st.sampled_from(["0", "1", "2", "110"])} if pods else {}
    return st.fixed_dictionaries(required, optional=optional)


taints = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["k", "l", "node.kubernetes.io/unschedulable"]),
            "value": st.sampled_from(["", "v", "w"]),
            "effect": st.sampled_from(EFFECTS),
        }
    ),
    max_size=3,
)

tolerations = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["", "k", "l", "node.kubernetes.io/unschedulable"]),
            "operator": st.sampled_from(["", "Equal", "Exists", "Gt"]),
            "value": st.sampled_from(["", "v", "w"]),
            "effect": st.sampled_from(["", *EFFECTS]),
        }
    ),
    max_size=3,
)

requirements = st.one_of(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(KEYS),
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(st.sampled_from(VALUES), max_size=2),
        }
    ),
    st.fixed_dictionaries(
        {"key": st.sampled_from(KEYS), "operator": st.sampled_from(["Exists", "DoesNotExist"])}
    ),
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(KEYS),
            "operator": st.sampled_from(["Gt", "Lt", "Like"]),
            "values": st.lists(st.sampled_from(["3", "6", "x9"]), min_size=1, max_size=2),
        }
    ),
)

fields = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["metadata.name", "metadata.name", "spec.other"]),
        "operator": st.sampled_from(["In", "NotIn", "Exists"]),
        "values": st.lists(st.sampled_from(NODE_NAMES), min_size=1, max_size=2),
    }
)

terms = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(requirements, max_size=2),
        "matchFields": st.lists(fields, max_size=1),
    },
)

good_terms = st.fixed_dictionaries(
    {
        "matchExpressions": st.lists(
            st.fixed_dictionaries(
                {
                    "key": st.sampled_from(KEYS),
                    "operator": st.sampled_from(["In", "NotIn"]),
                    "values": st.lists(st.sampled_from(VALUES), min_size=1, max_size=2),
                }
            ),
            max_size=2,
        )
    }
)

preferred = st.lists(
    st.fixed_dictionaries({"weight": st.integers(0, 100), "preference": good_terms}), max_size=3
)

node_affinities = st.fixed_dictionaries(
    {},
    optional={
        "requiredDuringSchedulingIgnoredDuringExecution": st.fixed_dictionaries(
            {"nodeSelectorTerms": st.lists(terms, max_size=3)}
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": preferred,
    },
)

added_affinities = st.fixed_dictionaries(
    {},
    optional={
        "requiredDuringSchedulingIgnoredDuringExecution": st.fixed_dictionaries(
            {"nodeSelectorTerms": st.lists(good_terms, max_size=2)}
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": preferred,
    },
).map(lambda raw: from_dict(NodeAffinity, raw))

ports = st.lists(
    st.fixed_dictionaries(
        {"hostPort": st.sampled_from([0, 80, 443])},
        optional={
            "hostIP": st.sampled_from(["", "0.0.0.0", "10.0.0.1", "10.0.0.2", "::"]),
            "protocol": st.sampled_from(["TCP", "UDP"]),
        },
    ),
    max_size=2,
)

containers = st.fixed_dictionaries(
    {"name": st.just("c"), "image": st.sampled_from(["app:1", "host:5000/base", "big@sha256:00"])},
    optional={
        "resources": st.fixed_dictionaries({"requests": quantities(pods=False)}),
        "ports": ports,
        "restartPolicyRules": st.just([{"action": "RestartAllContainers"}]),
    },
)

init_containers = st.builds(
    lambda base, policy: {**base, **policy},
    containers,
    st.sampled_from([{}, {"restartPolicy": "Always"}]),
)


@st.composite
def pods(draw: st.DrawFn, name: str = "asked") -> Pod:
    spec: dict[str, Any] = {
        "containers": draw(st.lists(containers, min_size=1, max_size=2)),
        "initContainers": draw(st.lists(init_containers, max_size=1)),
        "tolerations": draw(tolerations),
        "hostNetwork": draw(st.booleans()),
    }
    if draw(st.booleans()):
        spec["nodeSelector"] = draw(
            st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=1)
        )
    if draw(st.booleans()):
        spec["affinity"] = {"nodeAffinity": draw(node_affinities)}
    if draw(st.booleans()):
        spec["resources"] = {
            "requests": draw(st.fixed_dictionaries({}, optional={"cpu": cpu, "memory": memory}))
        }
    if draw(st.booleans()):
        spec["overhead"] = {"cpu": "50m"}
    if draw(st.booleans()):
        spec["hostUsers"] = False
    if draw(st.booleans()):
        spec["volumes"] = [{"name": "v", "image": {"reference": "app:1"}}]
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return from_dict(Pod, {"metadata": metadata, "spec": spec})


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    images = draw(st.lists(st.sampled_from(sorted(IMAGES)), unique=True, max_size=3))
    return from_dict(
        Node,
        {
            "metadata": {
                "name": name,
                "labels": draw(
                    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=3)
                ),
            },
            "spec": {"taints": draw(taints), "unschedulable": draw(st.booleans())},
            "status": {
                "allocatable": draw(quantities(pods=True)),
                "images": [{"names": [image], "sizeBytes": IMAGES[image]} for image in images],
                "declaredFeatures": draw(
                    st.lists(st.sampled_from(FEATURES), unique=True, max_size=3)
                ),
            },
        },
    )


@st.composite
def clusters(draw: st.DrawFn) -> list[tuple[Node, list[Pod]]]:
    """Return one to five nodes, each with the pods on it."""
    count = draw(st.integers(1, 5))
    return [
        (
            draw(nodes(NODE_NAMES[row])),
            [draw(pods(f"p{row}-{i}")) for i in range(draw(st.integers(0, 2)))],
        )
        for row in range(count)
    ]
