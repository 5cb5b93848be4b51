"""Status patches, byte for byte, and the rule for when a condition is written at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.meta import Condition
from moorage.api.pod import PodStatus
from moorage.client.pod_status import changed_condition, status_patch

NOW = "2026-01-01T00:00:00Z"
EARLIER = "2025-12-31T00:00:00Z"


def condition(**more: Any) -> Condition:
    fields: dict[str, Any] = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes",
        "observed_generation": 1,
        "last_transition_time": EARLIER,
    }
    return Condition(**{**fields, **more})


WRITTEN = (
    b'"lastProbeTime":null,"lastTransitionTime":"2025-12-31T00:00:00Z","message":"0/1 nodes",'
    b'"observedGeneration":1,"reason":"Unschedulable","status":"False","type":"PodScheduled"'
)


@pytest.mark.parametrize(
    ("old", "conditions", "nominated", "body"),
    [
        pytest.param(PodStatus(), [], None, None, id="nothing to change is nothing to send"),
        pytest.param(PodStatus(), [], "", None, id="no nomination to clear"),
        pytest.param(
            PodStatus(),
            [condition()],
            None,
            b'{"status":{"conditions":[{' + WRITTEN + b"}]}}",
            id="a first condition is sent plainly, without an order",
        ),
        pytest.param(
            PodStatus(conditions=[condition(type="Other")]),
            [condition()],
            None,
            b'{"status":{"$setElementOrder/conditions":[{"type":"Other"},{"type":"PodScheduled"}],'
            b'"conditions":[{' + WRITTEN + b"}]}}",
            id="a further condition tells the order",
        ),
        pytest.param(
            PodStatus(conditions=[condition()]),
            [condition(message="0/2 nodes")],
            None,
            b'{"status":{"$setElementOrder/conditions":[{"type":"PodScheduled"}],'
            b'"conditions":[{"message":"0/2 nodes","type":"PodScheduled"}]}}',
            id="of a known condition only what changed is sent",
        ),
        pytest.param(
            PodStatus(conditions=[condition()]),
            [condition(status="True", reason="", message="", last_transition_time=NOW)],
            None,
            b'{"status":{"$setElementOrder/conditions":[{"type":"PodScheduled"}],'
            b'"conditions":[{"lastTransitionTime":"2026-01-01T00:00:00Z","message":null,'
            b'"reason":null,"status":"True","type":"PodScheduled"}]}}',
            id="an emptied field is sent as null",
        ),
        pytest.param(
            PodStatus(conditions=[condition()]),
            [condition()],
            None,
            None,
            id="a condition that says the same is not sent",
        ),
        pytest.param(
            PodStatus(),
            [],
            "node-1",
            b'{"status":{"nominatedNodeName":"node-1"}}',
            id="a nomination",
        ),
        pytest.param(
            PodStatus(nominated_node_name="node-1"),
            [],
            "",
            b'{"status":{"nominatedNodeName":null}}',
            id="a nomination cleared is null",
        ),
        pytest.param(
            PodStatus(nominated_node_name="node-1"), [], "node-1", None, id="the same nomination"
        ),
        pytest.param(
            PodStatus(nominated_node_name="node-1"),
            [condition()],
            "node-2",
            b'{"status":{"conditions":[{' + WRITTEN + b'}],"nominatedNodeName":"node-2"}}',
            id="condition and nomination go in one patch",
        ),
    ],
)
def test_status_patch(old, conditions, nominated, body):
    assert status_patch(old, conditions=conditions, nominated_node_name=nominated) == body


@pytest.mark.parametrize(
    ("known", "wanted", "expected"),
    [
        pytest.param([], condition(), condition(last_transition_time=NOW), id="new"),
        pytest.param([condition()], condition(), None, id="the same is not written"),
        pytest.param(
            [condition()],
            condition(observed_generation=7),
            None,
            id="a new generation alone is not written",
        ),
        pytest.param(
            [condition()],
            condition(message="m", last_transition_time=None),
            condition(message="m"),
            id="another message keeps the transition time",
        ),
        pytest.param(
            [condition()],
            condition(status="True"),
            condition(status="True", last_transition_time=NOW),
            id="another status is a transition",
        ),
    ],
)
def test_changed_condition(known, wanted, expected):
    assert changed_condition(known, wanted, now=NOW) == expected


conditions = st.builds(
    Condition,
    type=st.sampled_from(["PodScheduled", "DisruptionTarget"]),
    status=st.sampled_from(["True", "False"]),
    reason=st.sampled_from(["", "A", "B"]),
    message=st.sampled_from(["", "x", "y"]),
    observed_generation=st.integers(0, 2),
    last_transition_time=st.sampled_from([EARLIER, NOW]),
)


@given(st.none() | conditions, conditions)
def test_applying_the_patch_gives_the_wanted_condition(old, wanted):
    before = [old] if old else []
    body = status_patch(PodStatus(conditions=before), conditions=[wanted])
    merged = {each.type: _plain(each) for each in before}
    for entry in json.loads(body)["status"]["conditions"] if body else []:
        target = merged.setdefault(entry["type"], {})
        target.update(entry)
    result = {key: value for key, value in merged[wanted.type].items() if value}
    assert result == {key: value for key, value in _plain(wanted).items() if value}


def _plain(each: Condition) -> dict[str, Any]:
    return {
        "lastTransitionTime": each.last_transition_time,
        "message": each.message,
        "observedGeneration": each.observed_generation,
        "reason": each.reason,
        "status": each.status,
        "type": each.type,
    }
