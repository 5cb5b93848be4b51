"""The work on a caller's data grows with its size, and not with the square of its size.

Steps are counted, so no time is measured: lines that Python runs, and comparisons of texts that
happen within one line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from moorage.api.resources import CONFIG_MAPS, CSI_NODES, PODS
from moorage.kinds.metadata import check_metadata
from moorage.kinds.pod.warnings import of_pod
from moorage.kinds.schema.shape import builtin_shape
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.verbs.applying.managers import Writing, applied
from moorage_sandbox.apiserver.verbs.applying.updates import updated
from moorage_sandbox.apiserver.verbs.applying.versions import Version
from moorage_sandbox.apiserver.verbs.patch_strategic import PatchError, strategic_merge

Work = Callable[[], object]
COUNT = 200
# Twice the data may take this many times the steps; the square would take four times as many.
GROWTH_MAX = 2.6


class Text(str):
    """A text that counts comparisons."""

    compared = 0
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        Text.compared += 1
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self)


def texts(prefix: str, count: int) -> list[Any]:
    return [Text(f"{prefix}{n}") for n in range(count)]


def steps(work: Work) -> int:
    """Return how many lines and comparisons a piece of work takes."""
    lines = 0

    def count(frame: Any, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before, compared = sys.gettrace(), Text.compared
    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines + Text.compared - compared


def _with(name: str, found: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", name: found}}


def _deleted(count: int) -> Work:
    old = _with("finalizers", texts("a", count))
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": texts("b", count)}}
    return lambda: strategic_merge(old, patch, CONFIG_MAPS)


def _retained(count: int) -> Work:
    keys: dict[str, Any] = {Text(f"k{n}"): {} for n in range(count)}
    patch = {"spec": {"strategy": keys | {"$retainKeys": texts("k", count)}}}
    return lambda: strategic_merge({"spec": {"strategy": keys}}, patch, PODS)


def _ordered(count: int) -> Work:
    old = _with("finalizers", texts("a", count))
    order = {"$setElementOrder/finalizers": [*texts("b", count), *texts("a", count)]}
    patch = {"metadata": {"finalizers": texts("b", count), **order}}
    return lambda: strategic_merge(old, patch, CONFIG_MAPS)


def _removed_by_key(count: int) -> Work:
    owners = [{"uid": name} for name in texts("u", count)]
    patch = _with("ownerReferences", [each | {"$patch": "delete"} for each in owners])
    return lambda: strategic_merge(_with("ownerReferences", owners), patch, CONFIG_MAPS)


def _finalizers_while_leaving(count: int) -> Work:
    old = _with("finalizers", texts("a", count))
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    new = _with("finalizers", [*texts("a", count), *texts("b", count)])
    return lambda: check_metadata(new, old, namespaced=False, rule=lambda name: [])


def _ports(**port: Any) -> Callable[[int], Work]:
    def made(count: int) -> Work:
        ports = [
            {key: value.format(n) if key == "hostIP" else value for key, value in port.items()}
            | ({"hostPort": n + 1} if "hostIP" not in port else {})
            for n in range(count)
        ]
        pod = {"spec": {"containers": [{"name": "a", "ports": ports}]}}
        return lambda: of_pod(pod)

    return made


def _tolerations(count: int) -> Work:
    kind = next(each for each in served_kinds() if each.resource == PODS)
    found = [{"key": key, "operator": "Exists"} for key in texts("k", count)]
    spec = {"containers": [{"name": "c", "image": "i"}]}
    old = {"metadata": {"name": "a"}, "spec": spec | {"tolerations": found[::2]}}
    new = {"metadata": {"name": "a"}, "spec": spec | {"tolerations": found}}
    return lambda: kind.validate(new, old, subresource=None)


def _gates(count: int) -> Work:
    kind = next(each for each in served_kinds() if each.resource == PODS)
    gates = [{"name": name} for name in texts("g", count)]
    spec = {"containers": [{"name": "c", "image": "i"}]}
    old = {"metadata": {"name": "a"}, "spec": spec | {"schedulingGates": gates}}
    new = {"metadata": {"name": "a"}, "spec": spec | {"schedulingGates": gates[::2]}}
    return lambda: kind.validate(new, old, subresource=None)


def _topology_keys(count: int) -> Work:
    kind = next(each for each in served_kinds() if each.resource == CSI_NODES)
    driver = {"name": "d", "nodeID": "n", "topologyKeys": texts("k", count)}
    node = {"metadata": {"name": "a"}, "spec": {"drivers": [driver]}}
    return lambda: kind.validate(node, None, subresource=None)


def _version() -> Version:
    return Version("v1", builtin_shape(PODS).layout(), lambda obj: obj, lambda obj: obj)


def _writing(manager: str = "me") -> Writing:
    return Writing(
        manager=manager,
        version=_version(),
        find=lambda name: None,
        subresource="",
        has_status=False,
        now="2026-01-01T00:00:00Z",
    )


def _labelled(count: int, value: str, managed: list[dict[str, Any]]) -> dict[str, Any]:
    labels = {f"k{n}": value for n in range(count)}
    return {"metadata": {"name": "a", "labels": labels, "managedFields": managed}}


def _managers(count: int, operation: str) -> list[dict[str, Any]]:
    return [
        {
            "manager": f"m{n}",
            "operation": operation,
            "apiVersion": "v1",
            "fieldsV1": {"f:metadata": {"f:labels": {f"f:k{n}": {}}}},
        }
        for n in range(count)
    ]


def _tracked(operation: str) -> Callable[[int], Work]:
    def made(count: int) -> Work:
        managed = _managers(count, operation)
        old, new = _labelled(count, "a", managed), _labelled(count, "b", managed)
        return lambda: updated(old, new, None, _writing())

    return made


def _conflicts_without_end(count: int) -> Work:
    managed = _managers(count, "Apply")
    config = {"metadata": {"name": "a", "labels": {f"x{n}": "c" for n in range(count)}}}
    return lambda: applied(_labelled(count, "a", managed), config, _writing(), force=False)


def _taken_over_in_another_order(count: int) -> Work:
    names = [f"c{n}" for n in range(count)]
    managed = _managers(1, "Apply")
    live = {
        "metadata": {"name": "a", "managedFields": managed},
        "spec": {"containers": [{"name": name} for name in names]},
    }
    config = {"spec": {"containers": [{"name": name} for name in reversed(names)]}}
    return lambda: applied(live, config, _writing(), force=True)


def _dropped_from_each_container(count: int) -> Work:
    names = [f"c{n}" for n in range(count)]
    keys = [f'k:{{"name":"{name}"}}' for name in names]
    tree: dict[str, Any] = {key: {".": {}, "f:name": {}, "f:image": {}} for key in keys}
    mine = {
        "manager": "me",
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsV1": {"f:spec": {"f:containers": tree}},
    }
    live = {
        "metadata": {"name": "a", "managedFields": [mine]},
        "spec": {"containers": [{"name": name, "image": "i"} for name in names]},
    }
    config = {"spec": {"containers": [{"name": name} for name in names]}}
    return lambda: applied(live, config, _writing(), force=True)


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(_deleted, id="a patch that deletes texts from a list"),
        pytest.param(_retained, id="a patch that retains keys"),
        pytest.param(_ordered, id="a patch that orders a list"),
        pytest.param(_removed_by_key, id="a patch that deletes objects by their key"),
        pytest.param(_finalizers_while_leaving, id="finalizers of an object that is being deleted"),
        pytest.param(_ports(containerPort=1), id="ports with different ports of the host"),
        pytest.param(
            _ports(containerPort=1, hostPort=1, hostIP="10.0.0.{}"),
            id="ports with different addresses of the host",
        ),
        pytest.param(_tolerations, id="tolerations that a pod gets"),
        pytest.param(_gates, id="gates that a pod loses"),
        pytest.param(_topology_keys, id="keys of the topology of a CSI driver"),
        pytest.param(_tracked("Apply"), id="a write of fields of many appliers"),
        pytest.param(_tracked("Update"), id="a write of fields of many updaters"),
        pytest.param(_conflicts_without_end, id="an apply next to many appliers"),
        pytest.param(_taken_over_in_another_order, id="an apply in another order"),
        pytest.param(_dropped_from_each_container, id="an apply that drops a field everywhere"),
    ],
)
def test_twice_the_data_takes_twice_the_steps(made: Callable[[int], Work]):
    made(2)()  # what is compiled once is not counted
    few, many = steps(made(COUNT)), steps(made(2 * COUNT))
    assert few > COUNT
    assert many <= GROWTH_MAX * few


def test_a_patch_that_names_one_element_again_and_again_is_refused():
    limits = {f"k{n}": "1" for n in range(2_000)}
    old = {"spec": {"containers": [{"name": "a", "resources": {"limits": limits}}]}}
    again = {"name": "a", "resources": {"limits": {"k0": "2"}}}
    few = strategic_merge(old, {"spec": {"containers": [again] * 400}}, PODS)
    assert few["spec"]["containers"][0]["resources"]["limits"] == limits | {"k0": "2"}
    with pytest.raises(PatchError, match="merging would copy more than 1000000 values"):
        strategic_merge(old, {"spec": {"containers": [again] * 600}}, PODS)
