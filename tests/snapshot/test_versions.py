"""Versions of one pod share what was compiled of them, exactly where their content agrees."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moorage.api.codec import decode, encode
from moorage.api.pod import Pod
from moorage.snapshot.pod_info import PodInfo, info_of
from moorage.snapshot.shape import NODE_NAME, RESOURCES
from tests.snapshot.builders import pod, port
from tests.snapshot.test_shape import KINDS, claim

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
