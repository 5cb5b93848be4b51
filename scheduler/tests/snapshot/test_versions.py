"""Versions of one pod share what was compiled of them, exactly where their content agrees."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moorage.api.codec import decode, encode
from moorage.api.pod import Pod
from moorage.snapshot import pod_info
from moorage.snapshot.pod_info import PodInfo, forget_lately, info_of
from moorage.snapshot.shape import NODE_NAME, RESOURCES
from scheduler.tests.snapshot.builders import pod, port
from scheduler.tests.snapshot.test_shape import KINDS, claim

_RESIZED = {"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0}

versions = st.fixed_dictionaries(
    {},
    optional={
        "namespace": st.sampled_from(["a", "b"]),
        "labels": st.sampled_from([{}, {"app": "web"}, {"app": "web", "tier": "x"}]),
        "annotations": st.sampled_from([{}, {"note": "1"}]),
        "requests": st.sampled_from([{"cpu": "1"}, {"cpu": "1000m"}, {"cpu": 1}, {"cpu": 1.0}]),
        "ports": st.sampled_from([(), (port(80),)]),
        "volumes": st.sampled_from([[], [claim("x")], [claim("y")]]),
        "nodeName": st.sampled_from(["", "n1", "n2"]),
        "priority": st.sampled_from([0, 5]),
        "deleted": st.booleans(),
        "status": st.sampled_from(
            [
                {},
                {"phase": "Running", "nominatedNodeName": "n1"},
                {"conditions": [{"type": "Ready", "status": "True"}]},
                {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "R"}]},
                {"containerStatuses": [_RESIZED]},
                {"containerStatuses": [{**_RESIZED, "allocatedResources": {"cpu": "2"}}]},
                {"resources": {"requests": {"cpu": "2"}}},
            ]
        ),
    },
)


@given(versions, versions)
def test_a_version_has_the_parts_it_would_have_without_the_one_before(before, after):
    old, new = PodInfo(pod("p", **before)), pod("p", **after)
    fresh, version = PodInfo(new), old.version(new)
    assert version.pod is new
    # Where 1 is written 1.0, the texts differ and the amounts do not: then a version shares more.
    assert version.counts_like(old) or not fresh.counts_like(old)
    for kind in KINDS:
        assert version.part(kind).value == fresh.part(kind).value


@given(st.lists(versions, max_size=4))
def test_a_pod_has_the_parts_it_would_have_without_the_replicas_before_it(contents):
    forget_lately()
    for number, content in enumerate(contents):
        replica = pod(f"p-{number}", generate_name="p-", **content)
        fresh, met = PodInfo(replica), info_of(replica)
        assert met.pod is replica
        for kind in KINDS:
            assert met.part(kind).value == fresh.part(kind).value


def test_replicas_share_their_parts_and_only_some_are_remembered(monkeypatch):
    monkeypatch.setattr(pod_info, "_REPLICAS_MOST", 10)
    forget_lately()
    for number in range(100):
        pods = [
            pod(f"p-{each}", generate_name=f"w{number}-", requests={"cpu": "1"}, nodeName=each)
            for each in ("n1", "n2")
        ]
        one, other = map(info_of, pods)
        assert one.counts_like(other)
        assert len(pod_info._replicas) <= 10


def test_only_lately_used_pods_are_remembered(monkeypatch):
    monkeypatch.setattr(pod_info, "_LATELY_MOST", 8)
    forget_lately()
    pods = [pod(f"p-{number}") for number in range(50)]
    for each in pods:
        met = info_of(each)
        assert len(pod_info._lately) <= 8
        assert info_of(each) is met


@given(versions)
def test_a_placed_pod_equals_the_api_version_with_that_node(content):
    content.pop("nodeName", None)
    waiting = PodInfo(pod("p", **content))
    placed = waiting.placed("n7")
    shown = PodInfo(pod("p", **content, nodeName="n7"))
    assert placed.pod == shown.pod
    assert placed.part(NODE_NAME).value == "n7"
    for kind in KINDS:
        assert placed.part(kind).value == shown.part(kind).value
    assert info_of(placed.pod) is placed


def test_a_version_decoded_by_the_watch_shares_unchanged_parts():
    before = info_of(pod("p", requests={"cpu": "1"}))
    again: Pod = decode(Pod, encode(before.pod))
    version = info_of(again, like=before)
    assert again is not before.pod
    assert version.part(RESOURCES) is before.part(RESOURCES)
    assert version.counts_like(before)
    assert info_of(again) is version
