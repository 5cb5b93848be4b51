"""Events: one store, two API versions, selectors by what they regard, an hour to live."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.kinds.cluster.event import event_from_core, event_to_core
from moorage_sandbox.apiserver.expiry import EventExpiry
from sandbox.tests.apiserver.harness import STRATEGIC, Cluster, unowned

CORE = "/api/v1/namespaces/default/events"
NEW = "/apis/events.k8s.io/v1/namespaces/default/events"


def _regarding(name: str) -> dict[str, str]:
    return {"kind": "Pod", "namespace": "default", "name": name, "uid": "u", "apiVersion": "v1"}


def new_event(name: str = "a.1", *, about: str = "a") -> dict[str, Any]:
    """Return an event as a scheduler writes it."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.123456Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host1",
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "type": "Warning",
        "note": "0/1 nodes are available",
        "regarding": _regarding(about),
    }


def core_event(name: str = "b.1", *, about: str = "b") -> dict[str, Any]:
    """Return an event as older components write it."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": _regarding(about),
        "reason": "Killing",
        "message": "Stopping container c",
        "source": {"component": "kubelet", "host": "n1"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 3,
        "type": "Normal",
    }


async def test_a_new_event_is_shown_as_a_core_event():
    cluster = Cluster()
    created = await cluster.ok("POST", NEW, new_event())
    shown = await cluster.ok("GET", f"{CORE}/a.1")
    assert unowned(shown)["metadata"] == unowned(created)["metadata"]
    expected = {
        "apiVersion": "v1",
        "kind": "Event",
        "message": "0/1 nodes are available",
        "involvedObject": _regarding("a"),
        "reportingComponent": "default-scheduler",
        "reportingInstance": "default-scheduler-host1",
        "eventTime": "2026-01-01T00:00:00.123456Z",
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "type": "Warning",
    }
    assert {key: shown[key] for key in expected} == expected


async def test_a_core_event_is_shown_as_a_new_event():
    cluster = Cluster()
    await cluster.ok("POST", CORE, core_event())
    shown = await cluster.ok("GET", f"{NEW}/b.1")
    expected = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "regarding": _regarding("b"),
        "note": "Stopping container c",
        "deprecatedSource": {"component": "kubelet", "host": "n1"},
        "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z",
        "deprecatedLastTimestamp": "2026-01-01T00:00:00Z",
        "deprecatedCount": 3,
    }
    assert {key: shown[key] for key in expected} == expected
    assert not {"message", "involvedObject", "source", "count"} & set(shown)


async def test_an_event_survives_conversion_to_both_versions():
    core = core_event()
    core |= {"reportingComponent": "c", "reportingInstance": "i"}
    assert event_to_core(event_from_core(core)) == core


async def test_a_scheduler_patches_the_series_of_an_event():
    cluster = Cluster()
    await cluster.ok("POST", NEW, new_event())
    patch = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}}
    found = await cluster.ok("PATCH", f"{NEW}/a.1", patch, content_type=STRATEGIC)
    assert found["series"] == patch["series"]
    assert found["note"] == "0/1 nodes are available"
    assert (await cluster.ok("GET", f"{CORE}/a.1"))["series"] == patch["series"]


IMMUTABLE = [
    pytest.param({"note": "other"}, "message", id="note"),
    pytest.param({"regarding": {"name": "z"}}, "involvedObject", id="regarding"),
    pytest.param({"reason": "Other"}, "reason", id="reason"),
    pytest.param({"type": "Normal"}, "type", id="type"),
    pytest.param({"deprecatedCount": 7}, "count", id="count"),
    pytest.param({"related": {"kind": "Pod", "name": "z"}}, "related", id="related"),
]


@pytest.mark.parametrize(("patch", "field"), IMMUTABLE)
async def test_only_the_series_of_an_event_changes_in_the_new_api(patch, field):
    cluster = Cluster()
    await cluster.ok("POST", NEW, new_event())
    status, answer = await cluster.call("PATCH", f"{NEW}/a.1", patch, content_type=STRATEGIC)
    causes = [(each["field"], each["message"]) for each in answer["details"]["causes"]]
    assert status == 422
    assert [each for each, _ in causes] == [field]
    assert causes[0][1].endswith("field is immutable")


async def test_the_older_api_allows_another_message():
    cluster = Cluster()
    await cluster.ok("POST", CORE, core_event())
    patch = {"message": "other", "count": 4}
    shown = await cluster.ok("PATCH", f"{CORE}/b.1", patch, content_type=STRATEGIC)
    assert (shown["message"], shown["count"]) == ("other", 4)


SELECTED = [
    pytest.param(CORE, "involvedObject.name=a", id="core: by the object's name"),
    pytest.param(CORE, "involvedObject.kind=Pod,reason=FailedScheduling", id="core: by reason"),
    pytest.param(CORE, "type=Warning", id="core: by type"),
    pytest.param(NEW, "regarding.name=a", id="new: by the object's name"),
    pytest.param(NEW, "reportingController=default-scheduler", id="new: by who reports"),
    pytest.param(CORE, "reportingComponent=default-scheduler", id="core: by who reports"),
]


@pytest.mark.parametrize(("path", "selector"), SELECTED)
async def test_events_are_filtered_by_field_selectors(path, selector):
    cluster = Cluster()
    await cluster.ok("POST", NEW, new_event())
    await cluster.ok("POST", CORE, core_event())
    assert await cluster.names(path, fieldSelector=selector) == ["a.1"]
    assert sorted(await cluster.names(path)) == ["a.1", "b.1"]


async def test_a_watch_shows_events_in_the_version_asked_for():
    cluster = Cluster()
    watch = await cluster.watch(NEW, fieldSelector="regarding.kind=Pod")
    await cluster.ok("POST", CORE, core_event())
    event = await watch.event()
    assert (event["type"], event["object"]["note"]) == ("ADDED", "Stopping container c")
    await watch.close()


async def test_an_event_of_the_new_api_needs_a_reporting_controller():
    body = new_event()
    del body["reportingController"]
    status, found = await Cluster().call("POST", NEW, body)
    assert (status, found["reason"]) == (422, "Invalid")
    fields = [cause["field"] for cause in found["details"]["causes"]]
    assert "reportingController" in fields


class TestExpiry:
    """An event lives an hour after it was last written."""

    async def test_an_event_expires_after_an_hour_and_watches_show_its_deletion(self):
        cluster = Cluster()
        await cluster.ok("POST", NEW, new_event())
        watch = await cluster.watch(CORE)
        cluster.clock.advance(3599)
        assert await cluster.names(CORE) == ["a.1"]
        cluster.clock.advance(1)
        assert await cluster.names(CORE) == []
        assert await watch.seen(2) == [("ADDED", "a.1"), ("DELETED", "a.1")]
        await watch.close()

    async def test_a_write_of_an_event_postpones_its_expiry_by_an_hour(self):
        cluster = Cluster()
        await cluster.ok("POST", NEW, new_event())
        cluster.clock.advance(1800)
        patch = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:30:00.000000Z"}}
        await cluster.ok("PATCH", f"{NEW}/a.1", patch, content_type=STRATEGIC)
        cluster.clock.advance(3599)
        assert await cluster.names(CORE) == ["a.1"]
        cluster.clock.advance(1)
        assert await cluster.names(CORE) == []

    async def test_the_oldest_events_are_removed_above_the_bound(self):
        cluster = Cluster()
        cluster.server._expiry = EventExpiry(cluster.server._world, events_max=2)
        cluster.server._writer._expiry = cluster.server._expiry
        for name in ("a", "b", "c", "d"):
            await cluster.ok("POST", NEW, new_event(f"{name}.1", about=name))
        assert await cluster.names(CORE) == ["c.1", "d.1"]


async def test_an_event_whose_values_contain_the_separator_of_packed_values_is_selected_by_them():
    cluster = Cluster()
    await cluster.ok("POST", CORE, core_event(about="b") | {"reason": "a\0b"})
    assert await cluster.names(CORE, fieldSelector="reason=a\0b,type=Normal") == ["b.1"]
    assert await cluster.names(CORE, fieldSelector="reason=a") == []
