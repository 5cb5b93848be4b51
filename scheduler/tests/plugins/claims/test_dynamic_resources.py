"""DynamicResources while it decides: PreEnqueue, PreFilter, Filter, PostFilter, Score, Reserve.

What kube-scheduler says of whole scenarios is in the recordings (family dra); here is what those
leave out, and each rule by itself. What is written is in `test_claim_binding`.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from moorage.api.changes import Action, ClusterEvent, Resource, matches
from moorage.api.claims import ClaimUsers
from moorage.api.devices import ResourceClaim
from moorage.api.pod import Pod
from moorage.base.clock import ManualClock
from moorage.base.errors import ConfigError
from moorage.base.rng import Streams
from moorage.config.feature_gates import feature_gates
from moorage.config.plugin_args import DynamicResourcesArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.group import GROUP_PHASE, ON_TRIAL
from moorage.framework.handle import Handle
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    ReasonTable,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from moorage.plugins.claims.dynamic_resources import CLAIMS, DynamicResources
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.plugins.builders import cluster, make, node, pod
from scheduler.tests.plugins.claims.builders import (
    allocated,
    claim,
    device_class,
    devices,
    offered,
    put,
    result,
    wanting,
)

GPUS = (device_class(), offered("a", "a0"), offered("b", "b0", "b1"))


class Asked:
    """A plugin and one attempt of a pod."""

    def __init__(self, snapshot: Snapshot, wanted: Pod | None = None, *, plugin: Any = None):
        self.snapshot = snapshot
        self.plugin = plugin or make("DynamicResources", snapshot)[0]
        self.pod = PodInfo(wanted or pod(resourceClaims=wanting("c")))
        self.state = CycleState()
        _, self.prepared = self.plugin.pre_filter(self.state, self.pod, snapshot)

    def filtered(self) -> dict[str, str]:
        """Return the reason by name of each node that is refused."""
        reasons = self.plugin._handle.reasons
        answer = self.plugin.filter(self.state, self.pod, self.snapshot.all())
        if answer is None:
            return {}
        return {
            self.snapshot.names[row]: reasons.reasons(int(answer.reason_n[row]))[0]
            for row in range(self.snapshot.num_nodes)
            if answer.code_n[row]
        }

    def scores(self) -> list[int]:
        raw: list[int] = self.plugin.score(self.state, self.pod, self.snapshot.all()).tolist()
        return raw

    def post_filtered(self) -> Status:
        status: Status = self.plugin.post_filter(self.state, self.pod, {})[1]
        return status

    def reserve(self, on: str) -> Status:
        status: Status = self.plugin.reserve(self.state, self.pod, on)
        return status

    def unreserve(self, on: str) -> None:
        self.plugin.unreserve(self.state, self.pod, on)


async def test_a_pod_without_claims_is_skipped_and_scores_nothing():
    snapshot = cluster(node("a"), node("b"))
    asked = Asked(snapshot, pod())
    plugin, state = asked.plugin, asked.state
    assert plugin.pre_enqueue(pod()) == SUCCESS
    assert asked.prepared == SKIP
    assert asked.filtered() == {}
    raw = plugin.score(state, asked.pod, snapshot.all())
    assert raw.tolist() == plugin.normalize(state, asked.pod, raw).tolist() == [0, 0]
    assert asked.post_filtered() == unschedulable("no new claims to deallocate")
    assert asked.reserve("a") == SUCCESS
    assert plugin.pre_bind_pre_flight(state, asked.pod, "a") == SKIP
    assert await plugin.pre_bind(state, asked.pod, "a") == SUCCESS


async def test_points_after_a_missing_pre_filter_are_errors():
    plugin, _ = make("DynamicResources")
    state, asked = CycleState(), PodInfo(pod())
    assert plugin.post_filter(state, asked, {}) == (None, error("not found"))
    assert plugin.reserve(state, asked, "a") == error("not found")
    assert plugin.pre_bind_pre_flight(state, asked, "a") == error("not found")
    assert await plugin.pre_bind(state, asked, "a") == error("not found")
    plugin.unreserve(state, asked, "a")


TEMPLATE = [{"name": "e", "resourceClaimTemplateName": "t"}]


def made(name: str | None) -> dict[str, Any]:
    status = {"name": "e", **({} if name is None else {"resourceClaimName": name})}
    return {"resourceClaims": TEMPLATE, "status": {"resourceClaimStatuses": [status]}}


@pytest.mark.parametrize(
    ("wanted", "fault"),
    [
        pytest.param(
            pod(resourceClaims=wanting("gone")),
            'could not find ResourceClaim "default/gone"',
            id="a claim does not exist",
        ),
        pytest.param(
            pod(resourceClaims=wanting("c", "going")),
            'resourceclaim "going" is being deleted',
            id="the second claim is being deleted",
        ),
        pytest.param(
            pod(resourceClaims=TEMPLATE),
            'pod "default/p": ResourceClaim not created yet',
            id="the claim of a template does not exist yet",
        ),
        pytest.param(
            pod(resourceClaims=[{"name": "e"}]),
            'pod "default/p", spec.resourceClaim "e": none of the supported fields are set',
            id="an entry names neither claim nor template",
        ),
        pytest.param(
            pod(**made("c")),
            "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)",
            id="the claim belongs to another pod",
        ),
        pytest.param(pod(**made("mine")), None, id="the pod's own claim"),
        pytest.param(pod(**made(None)), None, id="an entry for which no claim was needed"),
        pytest.param(pod(resourceClaims=wanting("c")), None, id="a claim by name"),
    ],
)
def test_a_pod_waits_until_its_claims_can_be_used(wanted, fault):
    snapshot = devices(
        *GPUS,
        claim(),
        claim("going", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        claim("mine", owner="uid-p"),
    )
    asked = Asked(snapshot, wanted)
    expected = SUCCESS if fault is None else unresolvable(fault)
    assert asked.plugin.pre_enqueue(wanted) == expected
    if fault is not None:
        assert asked.prepared == expected
        assert asked.post_filtered() == unschedulable("no new claims to deallocate")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        pytest.param(
            {"name": "r", "exactly": {"deviceClassName": "none"}},
            unresolvable("request r: device class none does not exist"),
            id="an unknown class",
        ),
        pytest.param(
            {
                "name": "r",
                "firstAvailable": [
                    {"name": "s", "deviceClassName": "gpu"},
                    {"name": "t", "deviceClassName": "none"},
                ],
            },
            unresolvable("request r/t: device class none does not exist"),
            id="an unknown class of the second alternative",
        ),
        pytest.param(
            {"name": "r"},
            unresolvable("resource claim default/c, request r: unknown request type"),
            id="a request of neither form",
        ),
        pytest.param(
            {"name": "r", "exactly": {}},
            error("request r: unsupported request type"),
            id="a request of an unknown form",
        ),
    ],
)
def test_device_classes_of_a_claim_must_exist(request_, status):
    assert Asked(devices(*GPUS, claim(requests=[request_]))).prepared == status


def test_an_invalid_node_selector_of_an_allocation_ends_the_attempt():
    term = {"matchExpressions": [{"key": "k", "operator": "Near"}]}
    broken = {"nodeSelector": {"nodeSelectorTerms": [term]}}
    asked = Asked(devices(*GPUS, claim(allocation=broken)))
    assert asked.prepared == error('"Near" is not a valid node selector operator')


# -- from Filter to Reserve --------------------------------------------------------------------


def test_reserved_devices_are_not_free_until_unreserve():
    snapshot = devices(*GPUS, claim("c"), claim("d"), claim("e"))
    one = Asked(snapshot)
    plugin = one.plugin
    assert (one.prepared, one.filtered(), one.reserve("a")) == (SUCCESS, {}, SUCCESS)
    waiting = Asked(snapshot, plugin=plugin)  # of the same claim
    text = "resource claim default/c is in the process of being allocated"
    assert (waiting.prepared, waiting.filtered()) == (
        SUCCESS,
        {"b": "resourceclaim not available on the node"},
    )
    snapshot.nominated_everywhere = False  # as upstream
    assert Asked(snapshot, plugin=plugin).prepared == unresolvable(text)
    other = pod("q", resourceClaims=wanting("d", "e"))
    two = Asked(snapshot, other, plugin=plugin)
    assert two.filtered() == {"a": "cannot allocate all claims"}
    one.unreserve("a")
    assert Asked(snapshot, pod("q", resourceClaims=wanting("d")), plugin=plugin).filtered() == {}
    assert two.reserve("b") == SUCCESS
    assert Asked(snapshot, plugin=plugin).filtered() == {"b": "cannot allocate all claims"}


def test_devices_allocated_in_the_api_are_not_free_until_deallocated():
    taken = claim("d", allocation=allocated("a", result("a", "a0")))
    snapshot = devices(*GPUS, claim(), taken)
    plugin = Asked(snapshot).plugin
    full = {"a": "cannot allocate all claims"}
    assert Asked(snapshot, plugin=plugin).filtered() == full
    snapshot.listers.resource_claims.remove(taken)
    assert Asked(snapshot, plugin=plugin).filtered() == {}
    put(snapshot, taken)
    assert Asked(snapshot, plugin=plugin).filtered() == full
    put(snapshot, claim("d"))
    assert Asked(snapshot, plugin=plugin).filtered() == {}


def test_slices_come_and_go():
    snapshot = devices(*GPUS, claim())
    plugin = Asked(snapshot).plugin
    slices = snapshot.listers.resource_slices
    slices.remove(offered("b"))
    assert Asked(snapshot, plugin=plugin).filtered() == {"b": "cannot allocate all claims"}
    put(snapshot, offered("b", "b9"))
    asked = Asked(snapshot, plugin=plugin)
    assert asked.filtered() == {}
    assert asked.reserve("b") == SUCCESS
    (under_way,) = snapshot.claims.under_way()
    assert under_way.status.allocation is not None
    assert [each.device for each in under_way.status.allocation.devices.results] == ["b9"]


def test_a_written_allocation_not_yet_shown_counts_once():
    big = {"capacity": {"memory": {"value": "10Gi"}}, "allowMultipleAllocations": True}
    wish = {"deviceClassName": "gpu", "count": 1, "capacity": {"requests": {"memory": "4Gi"}}}
    part = [{"name": "r", "exactly": wish}]
    snapshot = devices(
        device_class(), offered("a", "a0", **big), claim(requests=part), claim("d", requests=part),
        nodes=("a",),
    )  # fmt: skip
    asked = Asked(snapshot)
    assert (asked.filtered(), asked.reserve("a")) == ({}, SUCCESS)
    (under_way,) = snapshot.claims.under_way()
    put(snapshot, under_way)
    second = pod("q", resourceClaims=wanting("d"))
    assert Asked(snapshot, second, plugin=asked.plugin).filtered() == {}


def test_an_allocator_error_in_filter_ends_the_attempt_with_its_text():
    selector = {"cel": {"expression": "device.driver =="}}
    wish = {"deviceClassName": "gpu", "count": 1, "selectors": [selector]}
    asked = Asked(devices(*GPUS, claim(requests=[{"name": "r", "exactly": wish}])))
    answer = asked.plugin.filter(asked.state, asked.pod, asked.snapshot.all())
    assert answer.is_broken
    assert set(asked.filtered()) == {"a", "b"}


# -- claims that are allocated -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("reserved", "status"),
    [
        pytest.param((), "deallocation of ResourceClaim completed", id="no pod uses the claim"),
        pytest.param(
            ("uid-p",), "deallocation of ResourceClaim completed", id="only this pod uses the claim"
        ),
        pytest.param(("uid-q",), "still not schedulable", id="another pod uses the claim"),
        pytest.param(
            ("uid-p", "uid-q"), "still not schedulable", id="this pod and another pod use the claim"
        ),
    ],
)
def test_post_filter_deallocates_a_claim_that_no_other_pod_uses(reserved, status):
    held = claim(allocation=allocated("gone", result("gone", "g0")), reserved=reserved)
    asked = Asked(devices(*GPUS, held))
    text = "resourceclaim not available on the node"
    assert asked.filtered() == {"a": text, "b": text}
    assert asked.post_filtered() == unschedulable(status)


BINDING: dict[str, Any] = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]}


def conditional(condition: str | None, *, seconds_ago: int = 0) -> ResourceClaim:
    # The clock of the tests stands at 2026-01-01T00:00:00Z.
    stamp = {0: "2026-01-01T00:00:00Z", 600: "2025-12-31T23:50:00Z", 601: "2025-12-31T23:49:59Z"}
    held = allocated("a", result("a", "a0", **BINDING), allocationTimestamp=stamp[seconds_ago])
    told = {"driver": "gpu.example", "pool": "a", "device": "a0"}
    conditions = [{"type": condition, "status": "True", "reason": "R", "message": "m"}]
    shown = [] if condition is None else [{**told, "conditions": conditions}]
    return claim(allocation=held, devices=shown)


@pytest.mark.parametrize(
    ("held", "usable"),
    [
        pytest.param(conditional(None), True, id="the devices have no status yet"),
        pytest.param(conditional("Other"), True, id="the devices are not ready yet"),
        pytest.param(conditional("Ready", seconds_ago=601), True, id="the devices are ready"),
        pytest.param(conditional("Broken"), False, id="a device failed"),
        pytest.param(conditional("Other", seconds_ago=600), True, id="at the end of the timeout"),
        pytest.param(conditional("Other", seconds_ago=601), False, id="after the timeout"),
    ],
)
def test_devices_that_do_not_get_ready_make_their_claim_unavailable(held, usable):
    asked = Asked(devices(*GPUS, held, nodes=("a",)))
    text = "resourceclaim not available on the node"
    assert asked.filtered() == ({} if usable else {"a": text})
    said = "still not schedulable" if usable else "deallocation of ResourceClaim completed"
    assert asked.post_filtered() == unschedulable(said)


def test_a_failed_allocation_is_the_first_reason_and_leaves_the_other_claim_alone():
    held = claim("h", allocation=allocated("b", result("b", "b1")))
    snapshot = devices(device_class(), offered("b", "b0", "b1"), claim(), held)
    asked = Asked(snapshot, pod(resourceClaims=wanting("c", "h")))
    assert asked.filtered() == {"a": "cannot allocate all claims"}
    assert asked.post_filtered() == unschedulable("still not schedulable")


# -- scores ------------------------------------------------------------------------------------


def test_first_choices_score_eight_and_claims_that_are_allocated_count_too():
    choices = [
        {
            "name": "r",
            "firstAvailable": [
                {"name": "two", "deviceClassName": "gpu", "count": 2},
                {"name": "one", "deviceClassName": "gpu", "count": 1},
            ],
        }
    ]
    free = devices(*GPUS, claim(requests=choices))
    assert (asked := Asked(free)).filtered() == {}
    assert asked.scores() == [7, 8]
    assert asked.plugin.normalize(asked.state, asked.pod, asked.plugin.score(
        asked.state, asked.pod, free.all())).tolist() == [87, 100]  # fmt: skip
    given = allocated("b", result("b", "b0", "r/one"))
    held = claim("h", requests=choices, allocation=given)
    snapshot = devices(device_class(), offered("b", "b0", "b1"), claim(), held, nodes=("b",))
    both = Asked(snapshot, pod(resourceClaims=wanting("h", "c")))
    assert both.filtered() == {}
    assert both.scores() == [7]


# -- groups ------------------------------------------------------------------------------------


def test_members_of_a_group_share_a_pending_allocation():
    snapshot = devices(*GPUS, claim("c"), claim("d"))
    first = Asked(snapshot, pod("p1", resourceClaims=wanting("c")))
    first.filtered()
    first.state.write(GROUP_PHASE, ON_TRIAL)
    assert first.reserve("b") == SUCCESS
    second = Asked(snapshot, pod("p2", resourceClaims=wanting("c", "d")), plugin=first.plugin)
    assert second.prepared == SUCCESS
    assert second.filtered() == {"a": "resourceclaim not available on the node"}
    second.state.write(GROUP_PHASE, ON_TRIAL)
    assert second.reserve("b") == SUCCESS
    assert len(list(snapshot.claims.under_way())) == 2
    for member in (second, first):  # the trial ends
        member.unreserve("b")
        member.state.delete(GROUP_PHASE)
    assert list(snapshot.claims.under_way()) == []
    assert [first.reserve("b"), second.reserve("b")] == [SUCCESS, SUCCESS]  # and is carried out
    given = [each.allocation for each in second.state.read(CLAIMS).claims]
    assert [each and each.devices.results[0].device for each in given] == ["b0", "b1"]
    first.unreserve("b")
    assert snapshot.claims.find_under_way("uid-c") is not None


# -- hints -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, claim(), True, id="a new claim of the pod"),
        pytest.param(None, claim("x"), False, id="a new claim of another pod"),
        pytest.param(claim(), claim(), False, id="the pod's claim changes in no relevant field"),
        pytest.param(
            claim(), claim(reserved=("u",)), True, id="the status of the pod's claim changes"
        ),
        pytest.param(
            claim("x"), claim("x", reserved=("u",)), False, id="the status of another claim changes"
        ),
        pytest.param(
            claim("x", allocation=allocated("a")),
            claim("x"),
            True,
            id="devices of another claim are deallocated",
        ),
        pytest.param(
            claim("x", allocation=allocated("a", result("a", "a0"))),
            claim("x", allocation=allocated("b", result("b", "b0"))),
            True,
            id="another claim holds another device, as a new list shows it",
        ),
        pytest.param(
            claim("x", allocation=allocated("a", result("a", "a0"))),
            claim("x", allocation=allocated("a", result("a", "a0")), reserved=("u",)),
            False,
            id="another claim keeps its device",
        ),
    ],
)
def test_claim_hint(old, new, expected):
    plugin, _ = make("DynamicResources", devices(claim()))
    hint = plugin.events_to_register()[1].hint
    assert hint(pod(resourceClaims=wanting("c")), old, new) is expected
    assert hint(pod(resourceClaims=wanting("gone")), old, new) is False


SPECIAL = {"annotations": {"resource.kubernetes.io/extended-resource-claim": "true"}}


@pytest.mark.parametrize(
    ("gone", "expected", "concerned"),
    [
        pytest.param(
            claim("x", owner="uid-p", metadata=SPECIAL),
            True,
            [("default", "p")],
            id="the special claim of the pod",
        ),
        pytest.param(
            claim("x", owner="uid-q", metadata=SPECIAL),
            False,
            [("default", "q")],
            id="the special claim of another pod",
        ),
        pytest.param(
            claim("x", owner="uid-p"), False, [("default", "p")], id="a claim without devices"
        ),
        pytest.param(claim("x"), False, [], id="a claim without devices and owner"),
        pytest.param(claim("x", allocation=allocated("a")), True, None, id="a claim with devices"),
    ],
)
def test_the_hint_queues_when_a_claim_with_devices_or_the_special_claim_is_deleted(
    gone, expected, concerned
):
    plugin, _ = make("DynamicResources", devices())
    (found,) = [
        each
        for each in plugin.events_to_register()
        if matches(each.event, ClusterEvent(Resource.RESOURCE_CLAIM, Action.DELETE))
    ]
    assert found.hint(pod(), gone, None) is expected
    assert found.hint(pod(resourceClaims=wanting("gone")), gone, None) is False
    pods = found.concerns(gone, None)
    assert pods is None if concerned is None else [each.key for each in pods] == concerned


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, claim("x"), ClaimUsers("default", "x"), id="a new claim"),
        pytest.param(
            claim("x"),
            claim("x", reserved=("u",)),
            ClaimUsers("default", "x"),
            id="a changed claim",
        ),
        pytest.param(
            claim("x", allocation=allocated("a")), claim("x"), None, id="devices are deallocated"
        ),
    ],
)
def test_a_claim_concerns_the_pods_that_name_it_and_all_pods_once_its_devices_are_free(
    old, new, expected
):
    plugin, _ = make("DynamicResources", devices(claim()))
    assert plugin.events_to_register()[1].concerns(old, new) == expected


def test_pod_hint_queues_when_the_last_claim_exists():
    plugin, _ = make("DynamicResources", devices(claim("mine", owner="uid-p")))
    hint = plugin.events_to_register()[2].hint
    before, after = pod(resourceClaims=TEMPLATE), pod(**made("mine"))
    assert hint(before, before, after) is True
    assert hint(before, before, before) is False
    assert hint(pod("q"), before, after) is False


def test_answers_are_never_reused_for_pods_with_claims():
    plugin, _ = make("DynamicResources", devices(device_class(resource="example.com/gpu")))
    asking = pod(requests={"example.com/gpu": "1"})
    other = pod(requests={"example.com/fpga": "1", "cpu": "1"})
    for wanted, singular in (
        (pod(), False),
        (other, False),
        (asking, True),
        (pod(resourceClaims=wanting("c")), True),
    ):
        assert plugin.never_reused(PodInfo(wanted)) is singular


# -- feature gates -----------------------------------------------------------------------------


def without(
    gate: str, snapshot: Snapshot, args: DynamicResourcesArgs | None = None
) -> DynamicResources:
    handle = Handle(
        profile_name="default-scheduler",
        snapshot=snapshot,
        reasons=ReasonTable(),
        clock=ManualClock(),
        streams=Streams(1),
        gates=feature_gates({gate: False}),
    )
    return DynamicResources(args or DynamicResourcesArgs(), handle)


def test_alternatives_need_their_feature_gate():
    choice = {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "gpu"}]}
    snapshot = devices(*GPUS, claim(requests=[choice]))
    asked = Asked(snapshot, plugin=without("DRAPrioritizedList", snapshot))
    assert asked.prepared == unresolvable(
        "resource claim default/c, request r: has subrequests, but the DRAPrioritizedList feature "
        "is disabled"
    )


def test_extended_resources_need_their_feature_gate():
    snapshot = devices(device_class(resource="example.com/gpu"), offered("a", "a0"))
    wanted = pod(requests={"example.com/gpu": "1"})
    assert Asked(snapshot, wanted).prepared == SUCCESS
    plugin = without("DRAExtendedResource", snapshot)
    assert Asked(snapshot, wanted, plugin=plugin).prepared == SKIP


def test_waiting_for_devices_needs_its_feature_gate():
    snapshot = devices(*GPUS, conditional("Broken"), nodes=("a",))
    plugin = without("DRADeviceBindingConditions", snapshot)
    assert Asked(snapshot, plugin=plugin).filtered() == {}


@pytest.mark.parametrize(
    ("gate", "args", "fault"),
    [
        pytest.param(
            "DRASchedulerFilterTimeout",
            DynamicResourcesArgs(filter_timeout="5s"),
            'filterTimeout: Invalid value: "5s": needs DRASchedulerFilterTimeout=true',
            id="a filter timeout while its feature gate is off",
        ),
        pytest.param(
            "DRADeviceBindingConditions",
            DynamicResourcesArgs(binding_timeout="5s"),
            'bindingTimeout: Invalid value: "5s": needs DRADeviceBindingConditions=true',
            id="a binding timeout while its feature gate is off",
        ),
    ],
)
def test_a_timeout_of_a_disabled_feature_is_invalid(gate, args, fault):
    with pytest.raises(ConfigError, match=re.escape(fault)):
        without(gate, cluster(), args)
    assert without(gate, cluster()).name == "DynamicResources"
