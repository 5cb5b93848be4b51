"""Every call leaves a line that says who did what; a log that cannot be written stops nobody."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import pytest

from moorage.base.errors import UsageError
from moorage.base.rng import Streams
from moorage_sandbox.apiserver.audit import AuditLog
from moorage_sandbox.apiserver.wire.requests import User
from sandbox.tests.apiserver.harness import PODS, Cluster, pod


def _audited(path: Path) -> tuple[Cluster, AuditLog]:
    cluster = Cluster(rbac=True)
    log = AuditLog(path, clock=cluster.clock, rng=Streams(1).stream("audit"))
    cluster.server.audit_to(log)
    return cluster, log


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_an_audit_event_names_caller_object_and_outcome(tmp_path):
    cluster, log = _audited(tmp_path / "audit")
    await cluster.ok("POST", PODS, pod("a"), query={"dryRun": "All"}, user_agent="me/1")
    log.close()
    (event,) = _lines(tmp_path / "audit")
    assert event.pop("auditID")
    assert event == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": f"{PODS}?dryRun=All",
        "verb": "create",
        "user": {
            "username": "kubernetes-admin",
            "groups": ["system:masters", "system:authenticated"],
        },
        "userAgent": "me/1",
        "objectRef": {"resource": "pods", "namespace": "default", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 201},
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
        "stageTimestamp": "2026-01-01T00:00:00.000000Z",
    }
    assert (tmp_path / "audit").stat().st_mode & 0o777 == 0o600


async def test_an_audit_event_names_the_impersonated_user(tmp_path):
    cluster, log = _audited(tmp_path / "audit")
    await cluster.call("GET", PODS, impersonate_user="jane", impersonate_group="dev")
    log.close()
    (event,) = _lines(tmp_path / "audit")
    assert event["user"]["username"] == "kubernetes-admin"
    assert event["impersonatedUser"] == {
        "username": "jane",
        "groups": ["dev", "system:authenticated"],
    }
    assert event["responseStatus"]["code"] == 403


async def test_refused_unauthenticated_and_watch_calls_are_audited(tmp_path):
    cluster, log = _audited(tmp_path / "audit")
    await cluster.call("DELETE", f"{PODS}/a", user=User("jane"))
    await cluster.call("GET", "/apis/apps/v1/deployments", user=None)
    watch = await cluster.watch(PODS)
    await watch.close()
    await cluster.reply("GET", "/healthz", user=None)
    log.close()
    events = _lines(tmp_path / "audit")
    told = [
        (e["verb"], e.get("objectRef", {}).get("resource"), e["user"].get("username"), code)
        for e in events
        for code in [e["responseStatus"]["code"]]
    ]
    assert told == [
        ("delete", "pods", "jane", 403),
        ("list", "deployments", None, 401),
        ("watch", "pods", "kubernetes-admin", 200),
        ("watch", "pods", "kubernetes-admin", 200),
        ("get", None, None, 200),
    ]
    start, end = events[2:4]
    assert (start["stage"], end["stage"]) == ("ResponseStarted", "ResponseComplete")
    assert start["auditID"] == end["auditID"]


async def test_a_watch_is_audited_again_when_it_ends(tmp_path):
    cluster, log = _audited(tmp_path / "audit")
    await cluster.ok("POST", PODS, pod("a"))
    watch = await cluster.watch(PODS)
    await watch.event()
    assert [each["stage"] for each in _lines(tmp_path / "audit")[1:]] == ["ResponseStarted"]
    cluster.server.close()
    with pytest.raises(StopAsyncIteration):
        await watch.event()
    await watch.close()
    log.close()
    stages = [each["stage"] for each in _lines(tmp_path / "audit")[1:]]
    assert stages == ["ResponseStarted", "ResponseComplete"]


async def test_a_full_disk_is_logged_once_and_calls_are_still_answered(tmp_path, caplog):
    path = tmp_path / "audit"
    cluster, log = _audited(path)
    await cluster.ok("GET", PODS)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, hard))
    try:
        for _ in range(3):
            await cluster.ok("GET", PODS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    await cluster.ok("GET", PODS)
    log.close()
    assert [
        record.getMessage().partition(";")[0].partition(":")[0] for record in caplog.records
    ] == [
        "the audit log cannot be written, events are missing",
        "the audit log is written again",
    ]
    assert "3 events are missing" in caplog.records[-1].getMessage()


def test_an_audit_log_that_cannot_be_opened_prevents_the_start(tmp_path):
    with pytest.raises(UsageError, match="cannot write the audit log"):
        AuditLog(tmp_path / "no" / "such", clock=Cluster().clock, rng=Streams(1).stream("a"))
