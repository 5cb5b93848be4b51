"""Scope: strategic merge patches, directive by directive."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.kinds.kind import Obj
from moorage_sandbox.apiserver.verbs.patch_strategic import PatchError, strategic_merge
from scheduler.tests.kinds.builders import KINDS


def merged(plural: str, original: Obj, patch: Obj) -> Obj:
    return strategic_merge(original, patch, KINDS[plural].resource)


def spec(*containers: Obj, **more: Any) -> Obj:
    return {"spec": {"containers": list(containers), **more}}


READY = {"type": "Ready", "status": "True"}
SCHEDULED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


@pytest.mark.parametrize(
    ("original", "patch", "result"),
    [
        pytest.param(
            {"metadata": {"labels": {"a": "1", "b": "2"}}},
            {"metadata": {"labels": {"a": None, "c": "3"}}},
            {"metadata": {"labels": {"b": "2", "c": "3"}}},
            id="null deletes, other keys are merged",
        ),
        pytest.param(
            {"status": {"conditions": [READY, SCHEDULED]}},
            {
                "status": {
                    "$setElementOrder/conditions": [{"type": "Ready"}, {"type": "PodScheduled"}],
                    "conditions": [{"type": "PodScheduled", "status": "True", "reason": None}],
                }
            },
            {"status": {"conditions": [READY, {"type": "PodScheduled", "status": "True"}]}},
            id="conditions merge by type",
        ),
        pytest.param(
            {"status": {"nominatedNodeName": "n1", "phase": "Pending"}},
            {"status": {"nominatedNodeName": None, "conditions": [SCHEDULED]}},
            {"status": {"phase": "Pending", "conditions": [SCHEDULED]}},
            id="the scheduler clears a nomination and adds the first condition",
        ),
        pytest.param(
            spec({"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}),
            spec({"name": "b", "image": "b:2"}, {"name": "c", "image": "c:1"}),
            spec(
                {"name": "a", "image": "a:1"},
                {"name": "b", "image": "b:2"},
                {"name": "c", "image": "c:1"},
            ),
            id="containers merge by name, new ones go last",
        ),
        pytest.param(
            spec({"name": "a"}, {"name": "b"}, {"name": "server"}),
            spec({"name": "a", "$patch": "delete"}),
            spec({"name": "b"}, {"name": "server"}),
            id="$patch delete removes one element",
        ),
        pytest.param(
            spec({"name": "a"}, {"name": "b"}),
            spec({"$patch": "replace"}, {"name": "z"}),
            spec({"name": "z"}),
            id="$patch replace replaces the list",
        ),
        pytest.param(
            spec({"name": "a", "resources": {"limits": {"cpu": "1"}}}),
            spec({"name": "a", "resources": {"$patch": "replace", "requests": {"cpu": "2"}}}),
            spec({"name": "a", "resources": {"requests": {"cpu": "2"}}}),
            id="$patch replace replaces an object",
        ),
        pytest.param(
            spec({"name": "a", "resources": {"limits": {"cpu": "1"}}}),
            spec({"name": "a", "resources": {"$patch": "delete"}}),
            spec({"name": "a", "resources": {}}),
            id="$patch delete empties an object",
        ),
        pytest.param(
            {"spec": {"tolerations": [{"key": "a"}], "nodeSelector": {"x": "1"}}},
            {"spec": {"tolerations": [{"key": "b"}], "nodeSelector": {"y": "2"}}},
            {"spec": {"tolerations": [{"key": "b"}], "nodeSelector": {"x": "1", "y": "2"}}},
            id="tolerations are replaced, maps are merged",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]}},
            {"metadata": {"finalizers": ["c", "b"]}},
            id="finalizers are a set, a new one first",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a"]}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
            {"metadata": {"finalizers": []}},
            id="the last finalizer goes",
        ),
        pytest.param(
            {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
            {
                "spec": {
                    "volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {}}]
                }
            },
            {"spec": {"volumes": [{"name": "v", "hostPath": {}}]}},
            id="$retainKeys drops the other source of a volume",
        ),
        pytest.param(
            spec({"name": "a"}, {"name": "b"}, {"name": "mine"}),
            {
                "spec": {
                    "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
                    "containers": [{"name": "a", "image": "x"}],
                }
            },
            spec({"name": "b"}, {"name": "a", "image": "x"}, {"name": "mine"}),
            id="$setElementOrder orders, what it does not name stays",
        ),
        pytest.param(
            spec({"name": "a"}, {"name": "b"}, {"name": "c"}),
            spec({"name": "new"}, {"name": "b", "image": "x"}),
            spec({"name": "new"}, {"name": "a"}, {"name": "b", "image": "x"}, {"name": "c"}),
            id="an element the server had before one of the patch stays before it",
        ),
        pytest.param(
            spec({"name": "a"}, {"name": "b"}),
            spec({"name": "b", "image": "x"}, {"name": "a", "image": "y"}),
            spec({"name": "b", "image": "x"}, {"name": "a", "image": "y"}),
            id="elements of the patch stand in the patch's order",
        ),
        pytest.param(
            {},
            {"spec": {"containers": [{"name": "a", "image": None, "$patch": "merge"}]}},
            spec({"name": "a"}),
            id="nothing of a directive or a null stays in a new element",
        ),
        pytest.param(
            {"spec": {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1}]}},
            {"spec": {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 2}]}},
            {"spec": {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 2}]}},
            id="spread constraints merge by topology",
        ),
    ],
)
def test_a_strategic_patch_merges_pods(original, patch, result):
    before = copy.deepcopy(original)
    assert merged("pods", original, patch) == result
    assert original == before


@pytest.mark.parametrize(
    ("plural", "original", "patch", "result"),
    [
        pytest.param(
            "nodes",
            {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
            {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}},
            {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}},
            id="taints are replaced",
        ),
        pytest.param(
            "nodes",
            {"status": {"addresses": [{"type": "InternalIP", "address": "1"}]}},
            {"status": {"addresses": [{"type": "Hostname", "address": "n"}]}},
            {
                "status": {
                    "addresses": [
                        {"type": "Hostname", "address": "n"},
                        {"type": "InternalIP", "address": "1"},
                    ]
                }
            },
            id="addresses merge by type, a new one first",
        ),
        pytest.param(
            "services",
            {"spec": {"ports": [{"port": 80, "name": "a"}]}},
            {"spec": {"ports": [{"port": 80, "name": "b"}]}},
            {"spec": {"ports": [{"port": 80, "name": "b"}]}},
            id="ports of a service merge by port",
        ),
        pytest.param(
            "poddisruptionbudgets",
            {"spec": {"selector": {"matchLabels": {"a": "1"}}}},
            {"spec": {"selector": {"matchLabels": {"b": "2"}}}},
            {"spec": {"selector": {"matchLabels": {"b": "2"}}}},
            id="a budget's selector is replaced",
        ),
        pytest.param(
            "deployments",
            {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}},
            {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
            {"spec": {"strategy": {"type": "Recreate"}}},
            id="another strategy leaves nothing of the old one",
        ),
        pytest.param(
            "deployments",
            {"spec": {"template": spec({"name": "a", "env": [{"name": "X", "value": "1"}]})}},
            {"spec": {"template": spec({"name": "a", "env": [{"name": "Y", "value": "2"}]})}},
            {
                "spec": {
                    "template": spec(
                        {
                            "name": "a",
                            "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}],
                        }
                    )
                }
            },
            id="lists inside lists merge too",
        ),
    ],
)
def test_a_strategic_patch_merges_other_kinds(plural, original, patch, result):
    assert merged(plural, original, patch) == result


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        pytest.param(
            spec({"image": "x"}),
            "map: {'image': 'x'} does not contain declared merge key: name",
            id="an element without its key",
        ),
        pytest.param(
            {"spec": {"$patch": "explode"}},
            "Unknown patch type found: explode",
            id="an unknown directive",
        ),
        pytest.param(
            spec("a"),  # type: ignore[arg-type]
            "containers: every element of the patch must be an object",
            id="an element that is no object",
        ),
        pytest.param(
            {"spec": {"$retainKeys": ["a"], "nodeName": "n"}},
            "$retainKeys doesn't list nodeName, which the patch sets",
            id="a key set but not retained",
        ),
    ],
)
def test_a_faulty_strategic_patch_is_refused(patch, message):
    with pytest.raises(PatchError) as caught:
        merged("pods", {}, patch)
    assert str(caught.value) == message


names = st.lists(st.sampled_from("abcdef"), unique=True, max_size=6)


@settings(max_examples=80, deadline=None)
@given(server=names, patched=names, order=names)
def test_a_patched_list_has_the_order_of_set_element_order(server, patched, order):
    wanted = order + [name for name in patched if name not in order]
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": name} for name in wanted],
            "containers": [{"name": name, "image": "new"} for name in patched],
        }
    }
    result = merged("pods", spec(*({"name": name} for name in server)), patch)
    found = [entry["name"] for entry in result["spec"]["containers"]]
    assert sorted(found) == sorted({*server, *patched})
    assert [name for name in found if name in wanted] == [n for n in wanted if n in found]
    unnamed = [name for name in server if name not in wanted]
    assert [name for name in found if name in unnamed] == unnamed
