"""A group that preempts evicts once: the pods that one plain computation chooses, and no others.

Small clusters with the real controllers in virtual time. Controllers remake the victims at once, a
backlog waits for each piece of room, and the victims stop at different times. Judged are totals:
how many pods were evicted, and when the whole group runs. Every form of groups is played.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS
from moorage.api.resources import NODES, POD_GROUPS, PODS
from moorage.config.feature_gates import feature_gates
from moorage.config.gate_table import V1_36, V1_37
from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration
from moorage.kinds.built_in import resource_type
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from tests.scenarios.company import HIGH, Company, made, play, replicas
from tests.scenarios.gangs import coscheduling, pod_group

SERVED = {V1_36: POD_GROUPS.api_version, V1_37: "scheduling.k8s.io/v1beta1"}
"""The API version of PodGroups that a server of each version serves."""
LATE_SECONDS = 5
"""A group runs so many seconds after its slowest victim has stopped, at the latest."""


class Form(msgspec.Struct, frozen=True):
    """How pods name their group, and how the group is placed.

    Parameters
    ----------
    source
        ``object``, ``labels`` or ``kubernetes``.
    mode
        ``trial`` or ``permit``.
    whole
        Whether pods are evicted for the group as a whole.
    version
        The emulated version.
    """

    source: str
    mode: str = "trial"
    whole: bool = False
    version: str = V1_36

    def config(self, *, extra: str = "") -> LoadedConfiguration:
        """Return the configuration of the scheduler, with one more plugin if named."""
        if self.source != "kubernetes":
            return coscheduling(self.mode, extra=extra)
        gates = {"GenericWorkload": True}
        if self.version == V1_36:
            gates |= {"GangScheduling": True, "WorkloadAwarePreemption": self.whole}
        on = feature_gates(gates, self.version)
        return msgspec.structs.replace(with_plugin(extra), gates=on)

    async def create(
        self,
        company: Company,
        count: int,
        *,
        change: Callable[[Manifest], None] = lambda _: None,
        **fields: Any,
    ) -> None:
        """Create a group of so many pods, which all have to run; `change` changes each pod."""
        if self.source == "object":
            await company.cluster.client.create(
                COSCHEDULING_POD_GROUPS, pod_group(least=count), namespace="default"
            )
        if self.source == "kubernetes":
            spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": count}}}
            if self.whole:
                spec["priority"] = HIGH
            resource = resource_type(SERVED[self.version], "podgroups")
            group = {
                "apiVersion": resource.api_version,
                "kind": "PodGroup",
                "metadata": {"name": "g", "namespace": "default"},
                "spec": spec,
            }
            await company.cluster.client.create(resource, group, namespace="default")
        for index in range(count):
            pod = self.member(f"g{index}", count, **fields)
            change(pod)
            await company.create(pod)

    def member(self, name: str, least: int, **fields: Any) -> Manifest:
        """Return a pod of the group."""
        prefix = "pod-group.scheduling.sigs.k8s.io"
        labels = {
            "object": {"scheduling.x-k8s.io/pod-group": "g"},
            "labels": {f"{prefix}/name": "g", f"{prefix}/min-available": str(least)},
            "kubernetes": {},
        }[self.source]
        if self.source == "kubernetes":
            fields["schedulingGroup"] = {"podGroupName": "g"}
        return pod_manifest(
            name, labels=labels, **{"cpu": "1", "priorityClassName": "high", **fields}
        )


def with_plugin(name: str) -> LoadedConfiguration:
    """Return the default configuration with one more plugin; "" for none."""
    enabled = f"[{{name: {name}}}]" if name else "[]"
    return parse_config(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        f"- plugins: {{multiPoint: {{enabled: {enabled}}}}}\n"
    )


FORMS = [
    pytest.param(Form("object"), id="a PodGroup of coscheduling"),
    pytest.param(Form("labels"), id="labels"),
    pytest.param(Form("object", "permit"), id="a PodGroup of coscheduling, members at Permit"),
    pytest.param(Form("labels", "permit"), id="labels, members at Permit"),
    pytest.param(Form("kubernetes"), id="a PodGroup of Kubernetes"),
    pytest.param(Form("kubernetes", whole=True), id="a PodGroup of Kubernetes, preempting whole"),
]
FORMS_WITH_1_37 = [
    *FORMS,
    pytest.param(Form("kubernetes", whole=True, version=V1_37), id="a PodGroup of Kubernetes 1.37"),
]
"""For what holds whichever victims are chosen: in 1.37 they often are others."""


TRIAL = [
    each for each in FORMS if isinstance(form := each.values[0], Form) and form.mode == "trial"
]
Change = Callable[[Company, str], Awaitable[None]]


def node(name: str = "n1", cpu: str = "8") -> Manifest:
    return node_manifest(name, cpu=cpu, memory="64Gi")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("count", "stops"),
    [
        pytest.param(6, 0, id="six victims that stop at once"),
        pytest.param(8, 0, id="eight victims that stop at once"),
        pytest.param(8, 5, id="eight victims that stop slowly"),
    ],
)
def test_a_group_evicts_once_from_a_set_that_remakes_its_pods(
    form: Form, count: int, stops: float
) -> None:
    async def scenario(company: Company) -> None:
        await company.create(replicas(12, made("t", stops=stops, cpu="1")))
        await company.run("t-", 8)
        await form.create(company, count)
        seconds = await company.run("g", count)
        assert seconds < stops + LATE_SECONDS
        await company.sleep(20)
        assert len(company.evicted) == count

    play(scenario, nodes=[node()], config=form.config())


@pytest.mark.parametrize("form", FORMS)
def test_victims_that_stop_at_different_times_are_waited_for_together(form: Form) -> None:
    async def scenario(company: Company) -> None:
        for index, stops in enumerate((0, 1, 3, 6, 9, 12)):
            await company.create(made(f"v{index}", stops=stops, cpu="1"))
        await company.run("v", 6)
        for index in range(12):
            await company.create(made(f"w{index}", cpu="1"))
        await form.create(company, 6)
        seconds = await company.run("g", 6)
        assert seconds < 12 + LATE_SECONDS
        await company.sleep(20)
        assert company.evicted == [f"v{index}" for index in range(6)]
        assert company.placed("w") == [""] * 12

    play(scenario, nodes=[node(cpu="6")], config=form.config())


@pytest.mark.parametrize("form", FORMS_WITH_1_37)
def test_victims_on_several_nodes_are_waited_for_together(form: Form) -> None:
    async def scenario(company: Company) -> None:
        for index, stops in enumerate((1, 4, 8)):
            pod = made(f"t{index}", stops=stops, cpu="1", node_selector={"pool": f"p{index}"})
            await company.create(replicas(6, pod))
            await company.run(f"t{index}-", 4)
        await form.create(company, 6, cpu="2")
        seconds = await company.run("g", 6)
        assert seconds < 8 + LATE_SECONDS
        await company.sleep(20)
        assert len(company.evicted) == 12

    nodes = [
        node_manifest(f"n{index}", cpu="4", memory="64Gi", labels={"pool": f"p{index}"})
        for index in range(3)
    ]
    play(scenario, nodes=nodes, config=form.config())


@pytest.mark.parametrize("form", FORMS_WITH_1_37)
def test_members_that_need_no_victim_keep_their_places_meanwhile(form: Form) -> None:
    async def scenario(company: Company) -> None:
        for index in range(4):
            await company.create(made(f"v{index}", stops=5, cpu="1"))
        await company.run("v", 4)
        await form.create(company, 8)
        await company.nominate("g7", "n1")
        for index in range(8):
            await company.create(made(f"w{index}", cpu="1"))
        seconds = await company.run("g", 8)
        assert seconds < 5 + LATE_SECONDS
        await company.sleep(20)
        assert company.evicted == [f"v{index}" for index in range(4)]
        assert company.placed("w") == [""] * 8

    play(scenario, nodes=[node()], config=form.config())


@pytest.mark.parametrize("form", FORMS)
def test_a_group_waits_for_the_victims_of_others_on_the_nodes_of_its_members(form: Form) -> None:
    """A single pod shares a node with a member, and its victim stops later than the group's."""

    async def scenario(company: Company) -> None:
        pinned: dict[str, Any] = {"nodeSelector": {"node": "n2"}}
        await company.create(made("late", stops=8, cpu="1", **pinned))
        await company.sleep(3)  # of equal pods the youngest is evicted first
        await company.create(made("t1", stops=2, cpu="1", nodeSelector={"node": "n1"}))
        await company.create(made("t2", stops=2, cpu="1", **pinned))
        await company.run("", 3)
        await form.create(company, 2)
        await company.cluster.until(lambda: company.evicted == ["t1", "t2"])
        await company.create(made("single", high=True, cpu="1", **pinned))
        await company.nominate("single", "n2")
        for index in range(4):
            await company.create(made(f"w{index}", cpu="1"))
        await company.run("g", 2, seconds=20)
        await company.run("single", 1)
        await company.sleep(20)
        assert company.evicted == ["late", "t1", "t2"]
        assert company.placed("w") == [""] * 4

    nodes = [
        node_manifest(name, cpu=cpu, memory="64Gi", labels={"node": name})
        for name, cpu in (("n1", "1"), ("n2", "2"))
    ]
    play(scenario, nodes=nodes, config=form.config())


@pytest.mark.parametrize("form", FORMS)
def test_members_do_not_take_each_others_room_while_others_victims_stop(form: Form) -> None:
    """A single pod comes to the node of the first member; the second node has no further room."""

    async def scenario(company: Company) -> None:
        for name, stops in (("late", 8), ("stays", 0)):
            selector: dict[str, Any] = {"node": "n1" if name == "late" else "n2"}
            await company.create(made(name, stops=stops, cpu="1", nodeSelector=selector))
            await company.sleep(3)  # of equal pods the youngest is evicted first
        for name in ("n1", "n2"):
            await company.create(made(f"t-{name}", stops=2, cpu="1", nodeSelector={"node": name}))
        await company.run("", 4)
        await form.create(company, 2)
        await company.cluster.until(lambda: company.evicted == ["t-n1", "t-n2"])
        pinned: dict[str, Any] = {"nodeSelector": {"node": "n1"}}
        await company.create(made("single", high=True, cpu="1", **pinned))
        await company.nominate("single", "n1")
        await company.run("g", 2, seconds=20)
        await company.run("single", 1)
        await company.sleep(20)
        assert company.evicted == ["late", "t-n1", "t-n2"]

    nodes = [
        node_manifest(name, cpu="2", memory="64Gi", labels={"node": name}) for name in ("n1", "n2")
    ]
    play(scenario, nodes=nodes, config=form.config())


async def node_goes(company: Company, name: str) -> None:
    await company.cluster.delete_node(name)


async def node_is_closed(company: Company, name: str) -> None:
    await company.cluster.patch_object(NODES, name, {"spec": {"unschedulable": True}})


async def node_is_tainted(company: Company, name: str) -> None:
    taint = {"key": "repair", "effect": "NoSchedule"}
    await company.cluster.patch_object(NODES, name, {"spec": {"taints": [taint]}})


async def node_gets_a_label(company: Company, name: str) -> None:
    await company.cluster.patch_object(NODES, name, {"metadata": {"labels": {"new": "yes"}}})


@pytest.mark.parametrize("form", TRIAL)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(node_goes, id="the node goes"),
        pytest.param(node_is_closed, id="the node is closed"),
        pytest.param(node_is_tainted, id="the node is tainted"),
    ],
)
@pytest.mark.parametrize(
    ("count", "ports", "evicted"),
    [
        pytest.param(4, [], 8, id="all places are on one node"),
        pytest.param(2, [80], 3, id="one place of two is lost"),
    ],
)
def test_a_group_whose_places_are_lost_is_decided_about_anew(
    form: Form, change: Change, count: int, ports: list[int], evicted: int
) -> None:
    names = ("n1", "n2", "n3") if ports else ("n1", "n2")

    async def scenario(company: Company) -> None:
        for name in names:
            pod = made(f"t-{name}", stops=10, cpu="1", nodeSelector={"node": name})
            await company.create(replicas(5, pod))
            await company.run(f"t-{name}", 4)
        await form.create(company, count, host_ports=ports)
        await company.cluster.until(lambda: len(company.evicted) == count)
        await company.sleep(2)
        await change(company, company.seen.nominated["g0"][-1])
        assert await company.run("g", count, seconds=40) < 10 + LATE_SECONDS
        assert len(company.evicted) == evicted

    nodes = [node_manifest(name, cpu="4", memory="64Gi", labels={"node": name}) for name in names]
    play(scenario, nodes=nodes, config=form.config())


@pytest.mark.parametrize("form", TRIAL)
def test_a_change_that_leaves_a_group_its_places_costs_no_eviction(form: Form) -> None:
    async def scenario(company: Company) -> None:
        await company.create(replicas(12, made("t", stops=10, cpu="1")))
        await company.run("t-", 8)
        await form.create(company, 4)
        await company.cluster.until(lambda: len(company.evicted) == 4)
        for place in sorted(company.seen.nominated[f"g{index}"][-1] for index in range(4)):
            await company.sleep(1)
            await node_gets_a_label(company, place)
        assert await company.run("g", 4, seconds=40) < 10 + LATE_SECONDS
        assert len(company.evicted) == 4

    play(scenario, nodes=[node("n1", "4"), node("n2", "4")], config=form.config())


@pytest.mark.parametrize("form", TRIAL)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(node_goes, id="the node goes"),
        pytest.param(node_is_closed, id="the node is closed"),
        pytest.param(node_is_tainted, id="the node is tainted"),
    ],
)
def test_nothing_is_evicted_next_to_a_group_whose_places_are_lost(
    form: Form, change: Change
) -> None:
    """A pod comes right after the change: the room that the group had made is free for it."""

    async def scenario(company: Company) -> None:
        for name in names:
            place = {"node": name}
            await company.create(
                made(f"stays-{name}", stops=10, cpu="500m", nodeSelector=place),
                made(f"goes-{name}", stops=10, cpu="1", nodeSelector=place),
            )
        await company.run("goes-", 3)
        await form.create(company, 3, cpu="3500m")
        await company.cluster.until(lambda: len(company.evicted) == 3)
        evicted = company.evicted
        await company.sleep(0.3)
        await change(company, "n2")
        await company.create(made("single", high=True, cpu="500m"))
        assert await company.run("single") < 1.3  # the container takes 1 s to start
        await company.sleep(20)
        assert company.evicted == evicted

    names = ("n1", "n2", "n3")
    nodes = [node_manifest(name, cpu="4", memory="64Gi", labels={"node": name}) for name in names]
    play(scenario, nodes=nodes, config=form.config())


async def node_loses_its_label(company: Company, name: str) -> None:
    await company.cluster.patch_object(NODES, name, {"metadata": {"labels": {"suits": None}}})


@pytest.mark.parametrize(
    ("change", "seconds", "evicted"),
    [
        pytest.param(node_goes, 20, ["low-n1", "low-n2"], id="the node goes"),
        pytest.param(node_is_closed, 20, ["low-n1", "low-n2"], id="the node is closed"),
        pytest.param(node_is_tainted, 20, ["low-n1", "low-n2"], id="the node is tainted"),
        pytest.param(node_loses_its_label, 20, ["low-n1", "low-n2"], id="the node is relabelled"),
        pytest.param(node_gets_a_label, 18, ["low-n2"], id="the node suits the pod all the same"),
    ],
)
def test_a_pod_that_loses_its_nominated_node_makes_room_elsewhere_at_once(
    change: Change, seconds: float, evicted: list[str]
) -> None:
    async def scenario(company: Company) -> None:
        for name in ("n1", "n2"):
            low = made(f"low-{name}", stops=20, cpu="3", nodeSelector={"node": name})
            await company.create(low)
            await company.run(f"low-{name}")
        selector = {"suits": "yes"}
        await company.create(made("single", high=True, cpu="3", nodeSelector=selector))
        await company.nominate("single", "n2")
        await company.sleep(2)
        await change(company, "n2")
        assert seconds <= await company.run("single") < seconds + 2
        assert company.evicted == evicted

    nodes = [
        node_manifest(name, cpu="4", memory="64Gi", labels={"node": name, "suits": "yes"})
        for name in ("n1", "n2")
    ]
    play(scenario, nodes=nodes, config=with_plugin(""))


@pytest.mark.parametrize("form", TRIAL)
@pytest.mark.parametrize(
    ("label", "spread", "started"),
    [
        pytest.param("kubernetes.io/hostname", "DoNotSchedule", True, id="it must be spread"),
        pytest.param("kubernetes.io/hostname", "ScheduleAnyway", False, id="it may be spread"),
        pytest.param("zone", "DoNotSchedule", True, id="the node gets its domain later"),
    ],
)
def test_nothing_is_evicted_next_to_a_group_that_an_empty_domain_excludes(
    form: Form, label: str, spread: str, started: bool
) -> None:
    """No member fits on the node that comes, so two members on one of the others are too many."""

    async def scenario(company: Company) -> None:
        for name in names:
            place = {"node": name}
            await company.create(
                made(f"stays-{name}", cpu="500m", nodeSelector=place),
                made(f"goes-{name}", stops=20, cpu="1", nodeSelector=place),
            )
        await company.run("goes-", 3)
        constraint = {
            "maxSkew": 1,
            "topologyKey": label,
            "whenUnsatisfiable": spread,
            "labelSelector": {"matchLabels": {"spread": "yes"}},
        }
        constraints = [constraint]
        await form.create(
            company, 4, change=_label, cpu="1500m", topologySpreadConstraints=constraints
        )
        await company.cluster.until(lambda: len(company.evicted) == 1)
        await company.sleep(0.3)
        await company.cluster.join(node_manifest("late", cpu="100m"))
        await company.cluster.patch_object(
            NODES, "late", {"metadata": {"labels": {"zone": "late"}}}
        )
        await company.create(made("single", high=True, cpu="2"))
        await company.sleep(3)
        assert (company.cluster.phase_of("single") == "Running") is started
        assert len(company.evicted) == (1 if started else 2)

    names = ("n1", "n2", "n3")
    nodes = [
        node_manifest(name, cpu="4", memory="64Gi", labels={"node": name, "zone": name})
        for name in names
    ]
    play(scenario, nodes=nodes, config=form.config())


def _label(pod: Manifest) -> None:
    pod["metadata"].setdefault("labels", {})["spread"] = "yes"


@pytest.mark.parametrize("form", TRIAL)
def test_a_group_that_has_become_too_small_gives_the_room_to_others(form: Form) -> None:
    async def scenario(company: Company) -> None:
        await company.create(replicas(4, made("t", stops=3, cpu="1")))
        await company.run("t-", 4)
        await form.create(company, 4)
        await company.cluster.until(lambda: len(company.evicted) == 4)
        await company.cluster.client.delete(PODS, "g0", namespace="default")
        await company.run("t-", 4, seconds=10)

    play(scenario, nodes=[node(cpu="4")], config=form.config())


@pytest.mark.parametrize("form", TRIAL)
@pytest.mark.parametrize(
    "stops",
    [
        pytest.param(0.5, id="the victims have left when the group is looked at"),
        pytest.param(3, id="the victims stop meanwhile"),
    ],
)
def test_a_group_that_can_fit_no_more_gives_the_room_to_others(form: Form, stops: float) -> None:
    """No pod of lower priority is left, so no victim could make room for the group."""

    async def scenario(company: Company) -> None:
        pod = made("t", stops=stops, cpu="1", nodeSelector={"node": "n1"})
        await company.create(replicas(4, pod))
        await company.run("t-", 4)
        await form.create(company, 8)
        await company.cluster.until(lambda: len(company.evicted) == 4)
        await node_goes(company, "n2")
        await company.sleep(20)
        assert company.placed("t-") == ["n1"] * 4
        assert company.placed("g") == [""] * 8

    nodes = [node_manifest(name, cpu="4", labels={"node": name}) for name in ("n1", "n2")]
    play(scenario, nodes=nodes, config=form.config())


@pytest.mark.parametrize("form", FORMS_WITH_1_37)
@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(0.01, id="while the evictions are sent"),
        pytest.param(0.5, id="while the victims stop"),
        pytest.param(4.5, id="after the first victims have left"),
    ],
)
def test_a_scheduler_that_starts_in_the_middle_evicts_nobody_again(
    form: Form, seconds: float
) -> None:
    async def scenario(company: Company) -> None:
        await company.create(replicas(12, made("t", stops=4, cpu="1")))
        await company.create(*(made(f"v{index}", stops=8, cpu="1") for index in range(3)))
        await company.sleep(5)
        await form.create(company, 6)
        await company.cluster.until(lambda: len(company.evicted) == 6)
        await company.sleep(seconds)
        await company.restart(form.config())
        await company.run("g", 6, seconds=8 + LATE_SECONDS)
        await company.sleep(20)
        assert len(company.evicted) == 6

    play(scenario, nodes=[node()], config=form.config())


@pytest.mark.parametrize("form", FORMS)
def test_a_group_that_has_lost_two_places_evicts_no_pod_for_one_of_them(form: Form) -> None:
    """A node with two places goes while the victims stop; one other place could be made.

    The small pod ends then, so the members are tried again.
    """

    async def scenario(company: Company) -> None:
        for name, cpu in sizes.items():
            await company.create(made(f"low-{name}", stops=5, cpu=cpu, nodeSelector={"node": name}))
            await company.run(f"low-{name}")
            await company.sleep(2)
        await company.create(made("small", cpu="100m", nodeSelector={"node": "n1"}))
        await company.run("small")
        await form.create(company, 3)
        await company.sleep(1)
        evicted = company.evicted
        assert (len(evicted), evicted[-1]) == (2, "low-n3")
        await node_goes(company, "n3")
        await company.cluster.client.delete(PODS, "small", namespace="default")
        await company.sleep(20)
        assert company.evicted == evicted

    sizes = {"n1": "1", "n2": "1", "n3": "2"}
    nodes = [
        node_manifest(name, cpu=f"{cpu}100m", labels={"node": name}) for name, cpu in sizes.items()
    ]
    play(scenario, nodes=nodes, config=form.config())
