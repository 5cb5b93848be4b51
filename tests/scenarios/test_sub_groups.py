"""Groups with sub-groups: prefill and decode are placed together, each as it asks, or none.

The annotation ``moorage.dev/sub-groups``, on a PodGroup of coscheduling or on pods with the labels
of 2020, with members that are tried together or held at Permit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from moorage.api.coscheduling import SUB_GROUPS
from moorage.base import aio
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from tests.scenarios.company import Company
from tests.scenarios.gangs import (
    Cluster,
    coscheduling,
    nodes,
    of_labels,
    of_object,
    play,
    pod_group,
)
from tests.scenarios.test_preemption import Seen

ROLES = "role: prefill=2, decode=3"
RACK = "topology.kubernetes.io/rack"


def _role(pod: Manifest, role: str, text: str = "") -> Manifest:
    """Return a pod with a role, and with the annotation of its group unless an object has it."""
    metadata: dict[str, Any] = pod["metadata"]
    metadata["labels"]["role"] = role
    if text:
        metadata["annotations"] = {SUB_GROUPS: text}
    return pod


def _members(form: str, text: str = ROLES, *, least: int = 5, **counts: int) -> list[Manifest]:
    """Return the pods of a group by role, and its object if the form has one."""
    made = of_object if form == "object" else of_labels
    pods = [
        _role(made(f"{role}-{number}", least=least), role, "" if form == "object" else text)
        for role, count in counts.items()
        for number in range(count)
    ]
    if form == "labels":
        return pods
    group = pod_group(least=least)
    group["metadata"]["annotations"] = {SUB_GROUPS: text}
    return [group, *pods]


def _names(**counts: int) -> list[str]:
    return [f"{role}-{number}" for role, count in counts.items() for number in range(count)]


FORMS = pytest.mark.parametrize("form", ["labels", "object"])
MODES = pytest.mark.parametrize("mode", ["trial", "permit"])


@FORMS
@MODES
def test_the_sub_groups_are_placed_together(form: str, mode: str) -> None:
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*_members(form, prefill=2, decode=3))
        await live.until(lambda: live.bound(*_names(prefill=2, decode=3)) == 5)

    play(scenario, cluster=nodes(5), config=coscheduling(mode))


@FORMS
@MODES
def test_pods_of_one_sub_group_do_not_stand_in_for_those_of_another(form: str, mode: str) -> None:
    """Six pods are more than the five that the group needs, but decode has two of its three."""

    async def scenario(live: Cluster) -> None:
        await live.create_objects(*_members(form, prefill=4, decode=2))
        await aio.sleep(30)
        assert live.bound(*_names(prefill=4, decode=2)) == 0
        assert "sub-group decode has 2 of 3" in live.message_of("prefill-0"), live.message_of(
            "prefill-0"
        )
        last = _members(form, decode=3)[-1]
        await live.create_objects(last)
        await live.until(lambda: live.bound(*_names(prefill=4, decode=3)) == 7)

    play(scenario, cluster=nodes(7), config=coscheduling(mode))


@FORMS
@MODES
def test_no_pod_is_bound_before_every_sub_group_has_room(form: str, mode: str) -> None:
    async def scenario(live: Cluster) -> None:
        members = _members(form, prefill=4, decode=3)
        await live.create_objects(*members)
        await aio.sleep(60)
        assert live.bound(*_names(prefill=4, decode=3)) == 0
        await live.create_objects(*nodes(5)[4:])
        # Two of prefill and three of decode have room now, four of prefill would leave one node.
        await live.until(lambda: live.bound(*_names(decode=3)) == 3)
        assert live.bound(*_names(prefill=4)) == 2

    play(scenario, cluster=nodes(4), config=coscheduling(mode))


# -- topology --------------------------------------------------------------------------------------


def _racks(**cpus: Sequence[str]) -> list[Manifest]:
    """Return nodes by rack, each with so much cpu."""
    return [
        node_manifest(f"{rack}-n{number}", cpu=cpu, memory="8Gi", labels={RACK: rack})
        for rack, each in cpus.items()
        for number, cpu in enumerate(each)
    ]


def _rack(live: Cluster, name: str) -> str:
    return live.node_of(name).partition("-")[0]


CONFINED = f"role: prefill=2@{RACK}, decode=3@{RACK}"


@FORMS
def test_each_sub_group_stays_in_a_domain_of_its_own(form: str) -> None:
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*_members(form, CONFINED, prefill=2, decode=3))
        await live.until(lambda: live.bound(*_names(prefill=2, decode=3)) == 5)
        assert len({_rack(live, name) for name in _names(prefill=2)}) == 1
        assert {_rack(live, name) for name in _names(decode=3)} == {"r1"}

    cluster = _racks(r0=["1", "1"], r1=["1", "1", "1"], r2=["1"])
    play(scenario, cluster=cluster, config=coscheduling())


@FORMS
def test_a_sub_group_that_no_domain_takes_holds_up_all(form: str) -> None:
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*_members(form, CONFINED, prefill=2, decode=3))
        await aio.sleep(60)
        assert live.bound(*_names(prefill=2, decode=3)) == 0
        said = live.message_of("decode-0")
        assert f"sub-group decode: no domain of {RACK} takes 3 pods" in said, said
        await live.create_objects(*_racks(r1=["1", "1", "1"])[2:])
        await live.until(lambda: live.bound(*_names(prefill=2, decode=3)) == 5)

    cluster = _racks(r0=["1", "1"], r1=["1", "1"], r2=["1", "1"])
    play(scenario, cluster=cluster, config=coscheduling())


@FORMS
def test_a_sub_group_that_runs_grows_in_its_domain(form: str) -> None:
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*_members(form, CONFINED, prefill=2, decode=3))
        await live.until(lambda: live.bound(*_names(prefill=2, decode=3)) == 5)
        await live.create_objects(_members(form, CONFINED, prefill=3)[-1])
        await aio.sleep(60)
        assert not live.node_of("prefill-2")  # r2 has room, r0 has none
        await live.create_objects(*_racks(r0=["1", "1", "1"])[2:])
        await live.until(lambda: bool(live.node_of("prefill-2")))
        assert _rack(live, "prefill-2") == _rack(live, "prefill-0")

    cluster = _racks(r0=["1", "1"], r1=["1", "1", "1"], r2=["500m", "1"])
    play(scenario, cluster=cluster, config=coscheduling())


def test_pods_held_at_permit_cannot_keep_to_a_domain() -> None:
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*_members("labels", CONFINED, prefill=2, decode=3))
        await live.until(lambda: "needs groupMode trial" in live.message_of("prefill-0"))

    play(scenario, cluster=_racks(r0=["9"]), config=coscheduling("permit"))


# -- what goes wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("prefill=2, decode=3", "not of the form LABEL: NAME=MINIMUM[@TOPOLOGY LABEL], ..."),
        ("role:", "not of the form LABEL: NAME=MINIMUM[@TOPOLOGY LABEL], ..."),
        ("role: prefill=2, decode", '"decode" is not of the form NAME=MINIMUM[@TOPOLOGY LABEL]'),
        ("role: prefill=0, decode=3", 'the minimum of prefill is "0", not a whole number'),
        ("role: decode=1, decode=3", "sub-group decode is there twice"),
        ("ro le: prefill=2, decode=3", '"ro le" is not a label key'),
        ("role: pre fill=2, decode=3", '"pre fill" is not a label value'),
        ("role: prefill=2@a b, decode=3", 'the topology of prefill is "a b", not a label key'),
        ("role: prefill=3, decode=3", "its sub-groups need 6 pods, and the group only 5"),
    ],
)
@FORMS
@MODES
def test_a_wrong_annotation_is_told_and_the_group_waits(
    form: str, mode: str, text: str, why: str
) -> None:
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*_members(form, text, prefill=2, decode=3))
        await live.until(lambda: why in live.message_of("prefill-0"))
        assert SUB_GROUPS in live.message_of("prefill-0")
        assert live.bound(*_names(prefill=2, decode=3)) == 0
        about = [*(["g"] if form == "object" else []), "prefill-0"]
        for name in about:
            await aio.sleep(2)
            notes = [each["message"] for each in await live.events(name, reason="FailedScheduling")]
            assert any(why in str(note) for note in notes), (name, notes)

    play(scenario, cluster=nodes(9), config=coscheduling(mode))


@FORMS
def test_a_pod_of_no_sub_group_waits_and_the_others_go_on(form: str) -> None:
    async def scenario(live: Cluster) -> None:
        members = _members(form, least=5, prefill=2, decode=3)
        other = _members(form, least=5, router=1)[-1]
        await live.create_objects(*members, other)
        await live.until(lambda: live.bound(*_names(prefill=2, decode=3)) == 5)
        await live.until(lambda: bool(live.message_of("router-0")))
        said = live.message_of("router-0")
        assert (
            'pod router-0 is in no sub-group of group default/g: its label role is "router"' in said
        )

    play(scenario, cluster=nodes(9), config=coscheduling())


# -- with others -----------------------------------------------------------------------------------


def _low(count: int) -> list[Manifest]:
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 100,
        },
        *(pod_manifest(f"low-{number}", cpu="1") for number in range(count)),
    ]


@FORMS
@MODES
def test_a_group_preempts_only_for_all_its_sub_groups(form: str, mode: str) -> None:
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*_low(4))
        await live.until(lambda: live.bound(*(f"low-{number}" for number in range(4))) == 4)
        members = _members(form, prefill=2, decode=3)
        for each in members:
            if each["kind"] == "Pod":
                each["spec"]["priorityClassName"] = "high"
        await live.create_objects(*members)
        await aio.sleep(60)
        assert live.bound(*(f"low-{number}" for number in range(4))) == 4  # in vain: four nodes
        await live.create_objects(*nodes(5)[4:])
        await live.until(lambda: live.bound(*_names(prefill=2, decode=3)) == 5, seconds=120)

    play(scenario, cluster=nodes(4), config=coscheduling(mode))


@FORMS
@MODES
def test_a_backlog_of_groups_starts_one_after_another(form: str, mode: str) -> None:
    """Room for one of three groups; each ends when it has run."""

    async def scenario(live: Cluster) -> None:
        everybody = []
        for group in "abc":
            members = _members(form, prefill=2, decode=3)
            for each in members:
                metadata: Any = each["metadata"]
                labels = metadata.get("labels", {})
                metadata["name"] = (
                    group if each["kind"] == "PodGroup" else (f"{group}-{metadata['name']}")
                )
                for label, value in labels.items():
                    labels[label] = group if value == "g" else value
            everybody += members
        await live.create_objects(*everybody)
        started: list[str] = []
        for _ in range(3):
            await live.until(
                lambda: any(_runs(live, group) == 5 for group in "abc" if group not in started),
                seconds=600,
            )
            now = next(g for g in "abc" if g not in started and _runs(live, g) == 5)
            assert all(_runs(live, g) == 0 for g in "abc" if g not in (*started, now))
            started.append(now)
            await live.delete(*(f"{now}-{name}" for name in _names(prefill=2, decode=3)))

    play(scenario, cluster=nodes(5), config=coscheduling(mode))


def _runs(live: Cluster, group: str) -> int:
    return live.bound(*(f"{group}-{name}" for name in _names(prefill=2, decode=3)))


@FORMS
@MODES
def test_a_deleted_member_is_missed_in_its_sub_group(form: str, mode: str) -> None:
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*_members(form, prefill=2, decode=3))
        await live.until(lambda: live.bound(*_names(prefill=2, decode=3)) == 5)
        await live.delete("decode-1")
        await live.create_objects(_members(form, prefill=3)[-1])
        await aio.sleep(30)
        assert not live.node_of("prefill-2")  # a pod of prefill is none of decode
        again = _members(form, decode=4)[-1]
        await live.create_objects(again)
        await live.until(lambda: live.bound("decode-3", "prefill-2") == 2)

    play(scenario, cluster=nodes(9), config=coscheduling(mode))


@FORMS
@MODES
def test_a_scheduler_that_starts_anew_knows_the_sub_groups(form: str, mode: str) -> None:
    config = coscheduling(mode)

    async def scenario(live: Cluster) -> None:
        await live.create_objects(*_members(form, prefill=2, decode=2))
        await aio.sleep(5)
        await Company(live, Seen()).restart(config)
        await aio.sleep(30)
        assert live.bound(*_names(prefill=2, decode=2)) == 0
        await live.create_objects(_members(form, decode=3)[-1])
        await live.until(lambda: live.bound(*_names(prefill=2, decode=3)) == 5)
        await Company(live, Seen()).restart(config)
        await live.delete("decode-0")
        await live.create_objects(*_members(form, prefill=3, decode=4)[-5:][::4])
        await live.until(lambda: live.bound("prefill-2", "decode-3") == 2)

    play(scenario, cluster=nodes(9), config=config)
