"""The store and its logs against a naive model, by random writes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.rng import Streams
from moorage_sandbox.storage.record import Record
from moorage_sandbox.storage.store import Key, Store, Write
from moorage_sandbox.storage.watch_log import Limits, WatchLog

Writes = list[tuple[str, Key]]

_keys = st.tuples(st.sampled_from(["", "a", "ab", "b"]), st.sampled_from(["x", "xy", "y", "z"]))
_writes = st.lists(st.tuples(st.sampled_from(["put", "remove"]), _keys), max_size=40)


def _obj(namespace: str, name: str) -> dict[str, Any]:
    return {"metadata": {"namespace": namespace, "name": name}}


def _run(store: Store, writes: Writes) -> tuple[dict[Key, int], list[tuple[str, int, Key]]]:
    """Apply writes to a store and to a dictionary; return the dictionary and all changes."""
    model: dict[Key, int] = {}
    changes = []
    for verb, key in writes:
        if verb == "put":
            record = store.put("things", _obj(*key), {})
            changes.append(("MODIFIED" if key in model else "ADDED", record.version, key))
            model[key] = record.version
        elif key in model:
            record = store.remove("things", key)
            changes.append(("DELETED", record.version, key))
            del model[key]
    return model, changes


@given(_writes)
@settings(max_examples=50)
def test_the_store_is_a_sorted_dictionary(writes):
    store = Store()
    model, _ = _run(store, writes)
    shelf = store.shelf("things")
    assert [(r.key, r.version) for r in shelf.records()] == sorted(model.items())
    assert len(shelf) == len(model)
    for namespace in ("a", "ab", "b", "c"):
        expected = sorted(key for key in model if key[0] == namespace)
        assert [r.key for r in shelf.records(namespace)] == expected
    for key in model:
        behind = sorted(other for other in model if other > key)
        assert [r.key for r in shelf.records(after=key)] == behind
        record = shelf.get(key)
        assert record is not None
        assert record.decode()["metadata"]["resourceVersion"] == str(model[key])


@given(_writes, st.integers(1, 8))
@settings(max_examples=50)
def test_the_log_returns_every_change_since_any_version_it_holds(writes, kept):
    store = Store(Limits(changes=kept))
    _, changes = _run(store, writes)
    log = store.shelf("things").log
    assert len(log) == min(kept, len(changes))
    for since in range(1, store.version + 1):
        expected = [change for change in changes if change[1] > since]
        found = log.since(since, limit=1000)
        if len(expected) > kept:
            assert found is None
        else:
            assert found is not None
            assert [(c.type, c.version, c.record.key) for c in found] == expected


@given(_writes)
@settings(max_examples=50)
def test_a_change_carries_the_previous_record(writes):
    store = Store()
    _run(store, writes)
    last: dict[Key, Record | None] = {}
    for change in store.shelf("things").log.since(1, limit=1000) or []:
        assert change.previous == last.get(change.record.key)
        last[change.record.key] = None if change.type == "DELETED" else change.record


def test_the_log_keeps_its_byte_count_while_compacting():
    store = Store(Limits(size_bytes=1))
    for n in range(600):
        store.put("things", _obj("a", f"x{n}"), {})
    log = store.shelf("things").log
    # One change stays however large it is, or nobody could ever be told of it.
    assert len(log) == 1
    newest = log.since(store.version - 1, 1)
    assert newest is not None
    assert log.size_bytes == len(newest[0].record.data)


async def test_waiting_readers_wake_in_the_order_of_their_waits():
    log = WatchLog(Limits())
    woken: list[int] = []

    async def read(number: int) -> None:
        await log.wait_for_change(60)
        woken.append(number)

    tasks = TaskOwner()
    for number in range(200):
        tasks.spawn(read(number), name=f"reader {number}")
    await aio.sleep(0)
    assert log.readers_asleep == 200
    log.wake()
    await aio.sleep(0)
    await aio.sleep(0)
    assert woken == list(range(200))
    assert (log.readers_asleep, len(tasks)) == (0, 0)


def test_records_removed_during_a_read_are_left_out():
    store = Store()
    for name in ("x", "y", "z"):
        store.put("things", _obj("a", name), {})
    reading = store.shelf("things").records("a")
    assert next(reading).name == "x"
    store.remove("things", ("a", "y"))
    assert [record.name for record in reading] == ["z"]


@given(_writes, st.integers(0, 40), st.integers(0, 40), st.sampled_from(["", "a", "b"]), _keys)
@settings(max_examples=50)
def test_a_list_of_a_version_equals_the_state_at_that_version(
    writes, published, at, namespace, after
):
    store = Store()
    held: list[Write] = []
    store.hold_back(held.append)
    states: dict[int, list[tuple[Key, int]]] = {store.version: []}
    model: dict[Key, int] = {}
    for verb, key in writes:
        if verb == "put":
            model[key] = store.put("things", _obj(*key), {}).version
        elif key in model:
            store.remove("things", key)
            del model[key]
        states[store.version] = sorted(model.items())
    store.publish(held[:published])
    version = sorted(states)[at % len(states)]
    for place in (None, after):
        found = store.records_at("things", version, namespace, after=place)
        assert found is not None
        assert [(record.key, record.version) for record in found] == [
            (key, number)
            for key, number in states[version]
            if (not namespace or key[0] == namespace) and (place is None or key > place)
        ]


def test_a_version_older_than_the_log_has_no_list():
    store = Store(Limits(changes=2))
    _run(store, [("put", ("a", name)) for name in "xyz"])
    assert store.records_at("things", 1) is None
    found = store.records_at("things", 2)
    assert found is not None
    assert [record.name for record in found] == ["x"]


@pytest.mark.parametrize("many", [4096, 100], ids=["sorted when read", "sorted now and then"])
def test_keys_stay_sorted_when_many_objects_come_and_go_between_reads(many, monkeypatch):
    monkeypatch.setattr("moorage_sandbox.storage.store._CHANGES_MANY", many)
    rng = Streams(5).stream("keys")
    store, present = Store(), set[str]()
    shelf = store.shelf("things")
    for _ in range(40):
        for _ in range(rng.choice([0, 1, 10, 300])):
            name = f"n{rng.randrange(500)}"
            if name in present and rng.random() < 0.6:
                store.remove("things", ("", name))
                present.discard(name)
            else:
                store.put("things", _obj("", name), {})
                present.add(name)
        assert [r.name for r in shelf.records()] == sorted(present)


def _numbers(obj: dict[str, Any]) -> list[int]:
    """The numbers of an object of the tests; some are there twice."""
    found: list[int] = obj["numbers"]
    return found


_numbered = st.lists(
    st.tuples(_keys, st.none() | st.lists(st.integers(0, 3), max_size=3)), max_size=20
)


def _apply(store: Store, writes: list[tuple[Key, list[int] | None]]) -> None:
    """Put objects with these numbers, and remove those without any list."""
    for key, numbers in writes:
        if numbers is not None:
            store.put("things", {**_obj(*key), "numbers": numbers}, {})
        elif store.shelf("things").get(key) is not None:
            store.remove("things", key)


def _found(store: Store) -> dict[int, set[Key]]:
    """The keys of the objects with each number, as the index tells them."""
    return {each: set(store.shelf("things").keys_with(_numbers, each)) for each in range(4)}


def _expected(store: Store) -> dict[int, set[Key]]:
    """The same, by a look at every object."""
    records = list(store.shelf("things").records())
    assert store.shelf("things").size_bytes == sum(len(record.data) for record in records)
    return {each: {r.key for r in records if each in r.decode()["numbers"]} for each in range(4)}


@given(before=_numbered, kept=_numbered, undone=_numbered)
@settings(max_examples=50)
def test_objects_are_found_by_their_numbers_also_after_undone_writes_and_a_restart(
    before, kept, undone
):
    store = Store()
    _apply(store, before)  # the index is made of these, and follows the others
    assert _found(store) == _expected(store)
    _apply(store, kept)
    told = _found(store)
    assert told == _expected(store)
    held: list[Write] = []
    store.hold_back(held.append)
    _apply(store, undone)
    assert _found(store) == _expected(store)
    store.undo(held)
    assert _found(store) == told == _expected(store)
    other = Store()
    assert _found(other) == {each: set() for each in range(4)}
    other.restore(list(store.all_records()), store.version)
    assert _found(other) == told == _expected(other)
