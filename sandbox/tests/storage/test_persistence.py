"""A cluster on disk: what is answered is kept, what is not kept was never seen, what is damaged.

Not here: a server killed under load (sandbox/tests/sandbox/test_crash.py), the data directory
around the files (sandbox/tests/sandbox/test_data_directory.py), and disks with faults
(tests/attack/test_disk.py).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.base.aio import TaskOwner
from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.base.errors import MoorageError, UsageError
from moorage.kinds.values.packed_fields import PackedFields
from moorage_sandbox.storage.journal.faults import DamagedError, NoRoomError, UnsureError
from moorage_sandbox.storage.journal.files import Directory
from moorage_sandbox.storage.journal.journal import Journal
from moorage_sandbox.storage.journal.reading import load, newest_moment
from moorage_sandbox.storage.store import Store, Write
from sandbox.tests.apiserver.crd import definition
from sandbox.tests.apiserver.harness import (
    CONFIG_MAPS,
    PODS,
    Cluster,
    config_map,
    failure,
    pod,
    unowned,
)
from sandbox.tests.apiserver.test_events import NEW as EVENTS
from sandbox.tests.apiserver.test_events import new_event


class GatedJournal(Journal):
    """A journal whose commits wait for the test, and fail when told to."""

    def __init__(self, path: Path) -> None:
        super().__init__(_files(path))
        self.gate = threading.Semaphore(0)
        self.fault: MoorageError | None = None
        self.groups: list[int] = []

    def commit(self, writes: Sequence[Write]) -> None:
        assert self.gate.acquire(timeout=10), "the test did not let this commit go"
        self.groups.append(len(writes))
        if self.fault is not None:
            raise self.fault
        super().commit(writes)


def _files(path: Path) -> Directory:
    path.mkdir(exist_ok=True)
    return Directory(path)


def _open(path: Path) -> Journal:
    return Journal(_files(path))


def _full() -> NoRoomError:
    return NoRoomError("No space left on device")


class Kept:
    """A cluster kept in a file."""

    def __init__(self, path: Path, make: Callable[[Path], Journal] = _open) -> None:
        self.journal = make(path)
        self.cluster = Cluster(bootstrapped=False)
        server = self.cluster.server
        self.restored = server.restore(self.journal)
        if not self.restored:
            self.cluster.bootstrap()
            self.journal.fill(list(server.store.all_records()), server.store.version)
        self.persistence = server.keep_in(self.journal)

    async def close(self) -> None:
        self.cluster.server.close()
        await self.persistence.close()


async def test_a_write_that_is_on_the_disk_is_answered_though_telling_watchers_fails(
    tmp_path, monkeypatch
):
    kept = Kept(tmp_path / "data")

    def fail(writes: object) -> None:
        raise RuntimeError("a fault of the watch log")

    monkeypatch.setattr(kept.cluster.server.store, "publish", fail)
    async with asyncio.timeout(10):
        assert (await kept.cluster.reply("POST", CONFIG_MAPS, config_map())).status == 201
    monkeypatch.undo()
    await kept.close()


async def test_a_terminating_namespace_goes_on_terminating_after_a_restart(tmp_path):
    pods, path = "/api/v1/namespaces/team/pods", "/api/v1/namespaces/team"
    first = Kept(tmp_path / "db")
    await first.cluster.ok(
        "POST", "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": "team"}}
    )
    await first.cluster.ok("POST", pods, pod("busy", node="n1"))
    await first.cluster.ok("DELETE", path)
    await first.close()
    second = Kept(tmp_path / "db")
    status, found = await second.cluster.call("POST", pods, pod("new"))
    assert (status, found["reason"]) == (403, "Forbidden")
    await second.cluster.ok("DELETE", f"{pods}/busy", {"gracePeriodSeconds": 0})
    assert (await second.cluster.call("GET", path))[0] == 404
    await second.close()


async def test_a_namespace_emptied_in_the_last_moment_goes_after_a_restart(tmp_path):
    path = "/api/v1/namespaces/team"
    first = Kept(tmp_path / "db")
    made = await first.cluster.ok(
        "POST", "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": "team"}}
    )
    made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    first.cluster.server.store.put("namespaces", made, {})
    await first.close()
    for _ in range(2):
        later = Kept(tmp_path / "db")
        assert (await later.cluster.call("GET", path))[0] == 404
        await later.close()


def _everything(kept: Kept) -> list[tuple[str, Any]]:
    found = kept.cluster.server.store.all_records()
    return sorted(found, key=lambda each: (each[0], each[1].key))


async def test_a_restarted_server_has_every_object_as_it_was_and_goes_on_counting(tmp_path):
    first = Kept(tmp_path / "db")
    made = await first.cluster.ok("POST", PODS, pod("a"))
    await first.cluster.ok("POST", EVENTS, new_event())  # its fields are kept packed
    await first.cluster.ok("POST", CONFIG_MAPS, config_map("gone"))
    await first.cluster.ok("DELETE", f"{CONFIG_MAPS}/gone")
    version, before = first.cluster.server.store.version, _everything(first)
    await first.close()

    second = Kept(tmp_path / "db")
    assert (first.restored, second.restored) == (False, True)
    assert second.cluster.server.store.version == version
    assert _everything(second) == before
    (event,) = [record for resource, record in _everything(second) if resource == "events"]
    assert isinstance(event.fields, PackedFields)
    assert unowned(await second.cluster.ok("GET", f"{PODS}/a")) == unowned(made)
    new = await second.cluster.ok("POST", PODS, pod("b"))
    assert int(new["metadata"]["resourceVersion"]) == version + 1
    uids = [record.uid for _, record in _everything(second)]
    assert len(set(uids)) == len(uids), "the seed is the same, the uids are not"
    await second.close()


async def test_a_watch_goes_on_at_the_newest_version_and_starts_over_from_an_older_one(tmp_path):
    first = Kept(tmp_path / "db")
    await first.cluster.ok("POST", PODS, pod("a"))
    version = first.cluster.server.store.version
    await first.close()

    second = Kept(tmp_path / "db")
    newest = await second.cluster.watch(PODS, resourceVersion=str(version))
    older = await second.cluster.watch(PODS, resourceVersion=str(version - 1))
    await second.cluster.ok("POST", PODS, pod("b"))
    assert await newest.seen(1) == [("ADDED", "b")]
    error = (await older.event())["object"]
    assert (error["code"], error["reason"]) == (410, "Expired")
    for each in (newest, older):
        await each.close()
    await second.close()


async def test_custom_kinds_and_quotas_are_at_work_again_after_a_restart(tmp_path):
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    first = Kept(tmp_path / "db")
    made = await first.cluster.ok("POST", path, definition())
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": {"pods": "1"}},
    }
    await first.cluster.ok("POST", "/api/v1/namespaces/default/resourcequotas", quota)
    await first.cluster.ok("POST", PODS, pod("a"))
    await first.close()

    second = Kept(tmp_path / "db")
    spec = made["spec"]
    group = f"/apis/{spec['group']}/{spec['versions'][0]['name']}"
    assert (await second.cluster.call("GET", f"{group}/{spec['names']['plural']}"))[0] == 200
    status, refused = await second.cluster.call("POST", PODS, pod("b"))
    assert (status, "used: pods=1, limited: pods=1" in refused["message"]) == (403, True)
    await second.close()


async def test_answers_and_watches_show_a_write_only_once_it_is_on_disk(tmp_path):
    kept = Kept(tmp_path / "db", GatedJournal)
    gated, cluster = kept.journal, kept.cluster
    assert isinstance(gated, GatedJournal)
    watch = await cluster.watch(PODS, resourceVersion=str(cluster.server.store.version))
    tasks = TaskOwner()
    calls = [
        tasks.spawn(work, name="call")
        for work in (
            watch.event(),
            cluster.ok("POST", PODS, pod("a")),
            cluster.ok("GET", f"{PODS}/a"),
            cluster.call("POST", PODS, pod("a")),
        )
    ]
    done, _ = await asyncio.wait(calls, timeout=0.05)
    assert not done
    gated.gate.release(2)
    event, made, read, again = await asyncio.gather(*calls)
    assert event["object"] == made
    assert unowned(made) == unowned(read)
    assert again[0] == 409
    await watch.close()
    await kept.close()


async def test_writes_that_come_during_a_commit_share_the_next(tmp_path):
    kept = Kept(tmp_path / "db", GatedJournal)
    gated, cluster = kept.journal, kept.cluster
    assert isinstance(gated, GatedJournal)
    tasks = TaskOwner()
    names = ["first", *(f"p{i}" for i in range(9))]
    calls = []
    for name in names:
        calls.append(tasks.spawn(cluster.ok("POST", PODS, pod(name)), name=name))
        if name == "first":
            await asyncio.wait(calls, timeout=0.02)
    await asyncio.wait(calls, timeout=0.02)
    gated.gate.release(2)
    await asyncio.gather(*calls)
    assert gated.groups == [1, 9]
    await kept.close()


async def test_after_a_failed_fsync_no_call_is_answered_with_unsure_state(tmp_path, caplog):
    kept = Kept(tmp_path / "db", GatedJournal)
    gated, cluster = kept.journal, kept.cluster
    assert isinstance(gated, GatedJournal)
    gated.fault = UnsureError("Input/output error")
    gated.gate.release()
    calls = [
        cluster.call("POST", CONFIG_MAPS, config_map("a")),
        cluster.call("DELETE", f"{CONFIG_MAPS}/a"),
        cluster.call("GET", CONFIG_MAPS),
    ]
    answers = await asyncio.gather(*calls)
    # Whatever the disk says later: no call is answered, and no write reaches it any more.
    gated.fault = None
    gated.gate.release(5)
    answers.append(await cluster.call("POST", CONFIG_MAPS, config_map("b")))
    answers.append(await cluster.call("GET", CONFIG_MAPS))
    for status, body in answers:
        assert (status, body["reason"]) == (500, "InternalError")
        assert "whether the last writes are kept is not known" in body["message"]
        assert "nothing was changed" not in body["message"]
    assert len(gated.groups) == 1
    with pytest.raises(MoorageError, match="Input/output error"):
        await kept.persistence.failed()
    await kept.close()
    assert caplog.records
    # It did not end in good order, so the next server takes nothing for granted.
    found = load(_files(tmp_path / "db"))
    assert found is not None
    assert not found.mark.clean


async def test_a_write_refused_by_the_disk_leaves_nothing_and_later_writes_succeed(
    tmp_path, caplog
):
    kept = Kept(tmp_path / "db", GatedJournal)
    gated, cluster = kept.journal, kept.cluster
    assert isinstance(gated, GatedJournal)
    before, version = _everything(kept), cluster.server.store.version
    watch = await cluster.watch(CONFIG_MAPS, resourceVersion=str(version))
    gated.fault = _full()
    gated.gate.release()
    calls = [
        cluster.call("POST", CONFIG_MAPS, config_map("a")),
        cluster.call("DELETE", f"{CONFIG_MAPS}/a"),
        cluster.call("GET", CONFIG_MAPS),
    ]
    created, deleted, listed = await asyncio.gather(*calls)
    for status, body in (created, deleted):
        assert (status, body["code"], body["reason"]) == (507, 507, "InsufficientStorage")
        assert "No space left on device; nothing was changed" in body["message"]
    assert (listed[0], listed[1]["items"]) == (200, [])
    assert (_everything(kept), cluster.server.store.version) == (before, version)

    gated.fault = None
    gated.gate.release()
    made = await cluster.ok("POST", CONFIG_MAPS, config_map("b"))
    assert int(made["metadata"]["resourceVersion"]) == version + 1
    assert await watch.seen(1) == [("ADDED", "b")]
    assert [r.getMessage().partition(":")[0] for r in caplog.records] == [
        "writes are refused",
        "writes are kept again",
    ]
    await watch.close()
    await kept.close()
    with closing(_open(tmp_path / "db")) as journal:
        assert [r.name for n, r in journal.records() if n == "configmaps"] == ["b"]


async def test_consequences_of_a_refused_write_are_undone(tmp_path, caplog):
    kept = Kept(tmp_path / "db", GatedJournal)
    gated, cluster = kept.journal, kept.cluster
    assert isinstance(gated, GatedJournal)
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": {"pods": "1"}},
    }
    gated.gate.release()
    await cluster.ok("POST", "/api/v1/namespaces/default/resourcequotas", quota)
    gated.fault = _full()
    gated.gate.release(2)
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    made = definition()
    assert (await cluster.call("POST", path, made))[0] == 507
    assert (await cluster.call("POST", PODS, pod("a")))[0] == 507
    group = f"/apis/{made['spec']['group']}/{made['spec']['versions'][0]['name']}"
    unknown = await cluster.call("GET", f"{group}/{made['spec']['names']['plural']}")
    assert unknown == failure(
        404,
        "NotFound",
        "the server could not find the requested resource",
        unknown[1].get("details"),
    )
    gated.fault = None
    gated.gate.release()
    # The pod that never was takes nothing of the quota.
    await cluster.ok("POST", PODS, pod("b"))
    assert caplog.records
    await kept.close()


# --- the files --------------------------------------------------------------------------------


async def test_the_clusters_time_is_stored_at_each_commit_and_at_close(tmp_path):
    path = tmp_path / "db"
    files = _files(path)
    clock = ManualClock()
    assert newest_moment(files) == 0
    kept = Kept(path, lambda path: Journal(_files(path), clock))
    first = clock.now_ns()
    assert newest_moment(files) == first
    clock.advance(60)
    assert newest_moment(files) == first
    await kept.cluster.ok("POST", CONFIG_MAPS, config_map())
    assert newest_moment(files) == first + 60 * NS_PER_SECOND
    clock.advance(60)
    await kept.close()
    assert newest_moment(files) == first + 120 * NS_PER_SECOND
    # By the machine's time there is nothing to keep, and what was kept stays.
    await Kept(path).close()
    assert newest_moment(files) == first + 120 * NS_PER_SECOND


def test_an_unreadable_mark_gives_no_time(tmp_path):
    (tmp_path / "mark").write_bytes(b"not a mark, whatever its name says")
    assert newest_moment(_files(tmp_path)) == 0


def test_files_of_a_later_version_are_refused(tmp_path):
    journal = _open(tmp_path)
    journal.fill([], 1)
    journal._set_mark(format=99)
    with pytest.raises(UsageError, match="has format 99") as caught:
        _open(tmp_path)
    assert not isinstance(caught.value, DamagedError)


_steps = st.lists(
    st.tuples(st.sampled_from(["put", "remove"]), st.sampled_from("abc"), st.integers(0, 9)),
    max_size=8,
)


@given(st.lists(st.tuples(_steps, st.booleans()), max_size=6))
@settings(max_examples=40, deadline=None)
def test_the_files_and_the_store_hold_what_the_kept_groups_say(tmp_path_factory, groups):
    files = _files(tmp_path_factory.mktemp("journal") / "db")
    journal = Journal(files)
    store = Store()
    journal.fill([], store.version)
    held: list[Write] = []
    store.hold_back(held.append)
    model: dict[str, int] = {}
    for steps, refused in groups:
        after = dict(model)
        for verb, name, value in steps:
            if verb == "put":
                obj = {"metadata": {"namespace": "default", "name": name}, "value": value}
                store.put("things", obj, {})
                after[name] = value
            elif name in after:
                store.remove("things", ("default", name))
                del after[name]
        if refused:
            store.undo(held)
        elif held:
            journal.commit(held)
            store.publish(held)
            model = after
        held.clear()
        in_memory = [(r.name, r.decode()["value"]) for r in store.shelf("things").records()]
        assert in_memory == sorted(model.items())
        kept = load(files)
        assert kept is not None
        found = [(each.resource, each.record) for _, each in sorted(kept.entries.items())]
        assert found == list(store.all_records())
        assert kept.version == store.version
    journal.close()
