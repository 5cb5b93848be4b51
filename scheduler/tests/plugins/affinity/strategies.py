"""Random pods with affinity to each other, over few labels, namespaces and topology keys."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod

NAMESPACES = ("a", "b", "c")
KEYS = ("host", "zone", "rack")

labels = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["x", "y"]), max_size=2)

_expressions = st.one_of(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["app", "tier"]),
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(st.sampled_from(["x", "y"]), min_size=1, max_size=2),
        }
    ),
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["app", "tier"]),
            "operator": st.sampled_from(["Exists", "DoesNotExist"]),
        }
    ),
)
selectors = st.one_of(
    st.just({"matchLabels": {"app": "x"}}),
    st.fixed_dictionaries(
        {}, optional={"matchLabels": labels, "matchExpressions": st.lists(_expressions, max_size=2)}
    ),
)
terms = st.fixed_dictionaries(
    {"topologyKey": st.sampled_from(KEYS)},
    optional={
        "labelSelector": selectors,
        "namespaces": st.lists(st.sampled_from(NAMESPACES), max_size=2),
        "namespaceSelector": selectors,
    },
)
_wishes = st.lists(
    st.fixed_dictionaries({"weight": st.integers(1, 100), "podAffinityTerm": terms}), max_size=2
)
_groups = st.fixed_dictionaries(
    {},
    optional={
        "requiredDuringSchedulingIgnoredDuringExecution": st.lists(terms, max_size=2),
        "preferredDuringSchedulingIgnoredDuringExecution": _wishes,
    },
)
affinities = st.fixed_dictionaries(
    {}, optional={"podAffinity": _groups, "podAntiAffinity": _groups}
)
namespaces = st.dictionaries(st.sampled_from(NAMESPACES), labels, max_size=3)


@st.composite
def pods(draw: st.DrawFn, name: str = "asked") -> Pod:
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": draw(st.sampled_from(NAMESPACES)),
        "uid": f"uid-{name}",
        "labels": draw(labels),
    }
    if draw(st.integers(0, 3)) == 0:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"containers": [{"name": "c"}], "affinity": draw(st.none() | affinities)}
    return from_dict(Pod, {"metadata": metadata, "spec": spec})


def node(name: str, own: dict[str, str]) -> Node:
    status = {"allocatable": {"cpu": "4", "pods": "10"}}
    return from_dict(Node, {"metadata": {"name": name, "labels": own}, "status": status})


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    own = draw(
        st.dictionaries(st.sampled_from(["zone", "rack"]), st.sampled_from("12"), max_size=2)
    )
    return node(name, {"host": name, **own} if draw(st.booleans()) else own)


@st.composite
def clusters(draw: st.DrawFn) -> list[tuple[Node, list[Pod]]]:
    """Return one to four nodes, each with up to three pods."""
    return [
        (
            draw(nodes(f"n{row}")),
            [draw(pods(f"p{row}-{i}")) for i in range(draw(st.integers(0, 3)))],
        )
        for row in range(draw(st.integers(1, 4)))
    ]
