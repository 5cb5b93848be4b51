"""Every write of a run meets every fault of a disk, and no write that was told of is lost unseen.

One history of groups is committed to a journal, with logs that are compacted and a restart in it.
Each call to the disk fails, is lost, is torn or kills the process in turn; then the journal is
opened anew. It may refuse what is damaged and salvage the rest, but it never goes on from less
than was told, and never gives out a resourceVersion twice.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator

import msgspec
import pytest

from moorage.base.errors import UsageError
from moorage_sandbox.storage.journal import journal as journal_module
from moorage_sandbox.storage.journal.faults import DamagedError, NoRoomError, UnsureError
from moorage_sandbox.storage.journal.journal import Journal
from moorage_sandbox.storage.record import Record
from moorage_sandbox.storage.store import Store, Write
from moorage_sandbox.testing.disk import Fault, FaultyDisk, KilledError

Objects = dict[str, int]
GROUPS = 14
# Enough for a group to span sectors of the disk.
PADDING = "x" * 700


class Run(msgspec.Struct):
    """What a run did before it ended.

    Parameters
    ----------
    disk
        The disk.
    told
        The objects after each commit that was told of.
    opened
        How many calls the disk had got when a server had begun last.
    told_version
        The newest version that was told.
    unsure
        The objects as they are if the commit under way took effect; None where there was none.
    ended
        How the run ended: ``well``, ``killed``, ``unsure`` or ``refused``.
    """

    disk: FaultyDisk
    told: list[Objects]
    opened: int = 0
    told_version: int = 0
    unsure: Objects | None = None
    ended: str = "well"


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Let a short history have several logs and marks."""
    monkeypatch.setattr(journal_module, "LOG_BYTES", 3000)
    monkeypatch.setattr(journal_module, "RESERVE_BYTES", 600)
    monkeypatch.setattr(journal_module, "VERSIONS_AHEAD", 5)


class _Cluster:
    """A store whose writes go to a journal, as in the server."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.journal = Journal(run.disk, served=bool(run.told))
        self._store = Store()
        self._held: list[Write] = []
        version = self.journal.version()
        if version:
            self._store.restore(self.journal.records(), version)
        else:
            self.journal.fill([], self._store.version)
            run.told.append({})
        self._store.hold_back(self._held.append)

    def objects(self) -> Objects:
        return {r.name: r.decode()["value"] for r in self._store.shelf("things").records()}

    def commit(self, number: int) -> None:
        """Commit one group: objects are written, written again, and removed."""
        for name in (f"a{number % 3}", f"b{number}"):
            meta = {"namespace": "default", "name": name}
            obj = {"metadata": meta, "value": number, "padding": PADDING}
            self._store.put("things", obj, {})
        if number > 2:
            key = ("default", f"b{number - 2}")
            if self._store.shelf("things").get(key) is not None:
                self._store.remove("things", key)
        run = self._run
        run.unsure = self.objects()
        try:
            self.journal.commit(self._held)
        except NoRoomError:
            self._store.undo(self._held)
        else:
            self._store.publish(self._held)
            run.told.append(run.unsure)
            run.told_version = self._store.version
        run.unsure = None
        self._held.clear()
        if self.journal.compaction_due:
            self.journal.compact()


def _run(fault: Fault) -> Run:
    """Commit the history, with a restart in good order in the midst."""
    run = Run(FaultyDisk(fault), [])
    try:
        for numbers in (range(GROUPS // 2), range(GROUPS // 2, GROUPS)):
            cluster = _Cluster(run)
            run.opened = run.disk.step
            for number in numbers:
                cluster.commit(number)
            cluster.journal.close()
    except KilledError:
        run.ended = "killed"
    except UnsureError:
        run.ended = "unsure"
    except UsageError:
        run.ended = "refused"
    return run


def _steps() -> range:
    return range(1, _run(Fault()).disk.step + 1)


def _opened(disk: FaultyDisk, run: Run, *, salvaging: bool = False) -> tuple[Objects, Journal]:
    journal = Journal(disk, served=bool(run.told), salvaging=salvaging)
    found = {record.name: record.decode()["value"] for _, record in journal.records()}
    return found, journal


def _restarts(run: Run) -> Iterator[tuple[str, FaultyDisk]]:
    """Yield the disk as the next server may find it."""
    # A power cut changes the platter, so each is of a run of its own.
    yield "killed", run.disk.after_death()
    for surviving in ("nothing", "all", "first half", "sectors", "sectors"):
        for seed in range(2 if surviving == "sectors" else 1):
            again = _run(run.disk.fault)
            yield f"{surviving} {seed}", again.disk.after_power_cut(surviving, seed)


def _check(run: Run, disk: FaultyDisk, what: str) -> None:
    """Hold what the next server finds against what was told."""
    possible = [run.told[-1] if run.told else {}]
    if run.unsure is not None:
        possible.append(run.unsure)
    found, journal = _opened(disk, run)
    assert found in possible, what
    assert journal.version() >= run.told_version, what
    if run.told:
        _goes_on(disk, run, found, what)


def _goes_on(disk: FaultyDisk, run: Run, found: Objects, what: str) -> None:
    """Whatever was found is whole, and takes further writes."""
    later = Run(disk, [found], told_version=run.told_version)
    cluster = _Cluster(later)
    assert cluster.objects() == found, what
    cluster.commit(99)
    assert later.told_version > run.told_version, what
    cluster.journal.close()
    assert _opened(disk, later)[0] == later.told[-1], what


def test_a_disk_without_faults_keeps_every_write():
    run = _run(Fault())
    assert run.ended == "well"
    assert len(run.told) == GROUPS + 1
    assert {"mark", "progress", "reserve"} < set(run.disk.contents())
    generations = [name for name in run.disk.contents() if name.startswith("log-")]
    assert generations != ["log-1"], "logs were compacted"
    _check(run, run.disk.after_death(), "sound")


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        pytest.param("kill", 0, id="the process dies"),
        pytest.param("fail", errno.EIO, id="the disk fails", marks=pytest.mark.slow),
        pytest.param("fail", errno.ENOSPC, id="the disk is full", marks=pytest.mark.slow),
        pytest.param("short", errno.ENOSPC, id="the disk is full in the midst of a write"),
        pytest.param(
            "short", errno.EIO, id="the disk fails in the midst of a write", marks=pytest.mark.slow
        ),
    ],
)
def test_no_acknowledged_write_is_lost_when_a_disk_call_fails(kind, error, caplog):
    ends = set()
    for step in _steps():
        fault = Fault(step, kind, error)
        run = _run(fault)
        ends.add(run.ended)
        for state, disk in _restarts(run):
            _check(run, disk, f"{fault} {state}")
    assert ends - {"well", "refused"} or error == errno.ENOSPC
    caplog.clear()


def _salvage(disk: FaultyDisk, run: Run, what: str) -> list[str]:
    """Salvage, and check that nothing is made up and no version comes again."""
    found, journal = _opened(disk, run, salvaging=True)
    for name, value in found.items():
        assert any(state.get(name) == value for state in (*run.told, run.unsure or {})), what
    assert journal.version() >= run.told_version, what
    assert journal.report[0].startswith("damaged: "), what
    # What was damaged is still there to be looked at.
    assert any("/report.txt" in name for name in disk.contents()), what
    _goes_on(disk, run, found, what)
    return journal.report


def _found_or_salvaged(run: Run, disk: FaultyDisk, what: str) -> str:
    """Open a disk with damage; return whether all was there, or what was told."""
    possible = [run.told[-1]] if run.unsure is None else [run.told[-1], run.unsure]
    try:
        found, journal = _opened(disk, run)
    except DamagedError:
        _salvage(disk, run, what)
        return "refused"
    assert journal.version() >= run.told_version, what
    if found in possible:
        _goes_on(disk, run, found, what)
        return "whole"
    assert found in run.told, f"{what}: a state that never was"
    return "older"


def _full_disk() -> tuple[FaultyDisk, Journal, Store, list[Write]]:
    """Return a disk on which no write has room any more, and what keeps objects on it."""
    disk = FaultyDisk()
    journal, store = Journal(disk), Store()
    held: list[Write] = []
    journal.fill([], store.version)
    store.hold_back(held.append)
    for number in range(3):
        _put(store, f"c{number}")
    _commit(journal, store, held)
    disk.room_bytes = sum(disk.contents().values())
    return disk, journal, store, held


def _put(store: Store, name: str) -> None:
    store.put("things", {"metadata": {"namespace": "default", "name": name}, "x": PADDING}, {})


def _commit(journal: Journal, store: Store, held: list[Write]) -> bool:
    """Commit what is held; whether there was room for it."""
    try:
        journal.commit(held)
    except NoRoomError:
        store.undo(held)
        return False
    else:
        store.publish(held)
        return True
    finally:
        held.clear()


def test_deletes_have_room_on_a_full_disk_and_other_writes_have_not():
    disk, journal, store, held = _full_disk()
    _put(store, "d")
    assert not _commit(journal, store, held)
    store.remove("things", ("default", "c0"))
    assert _commit(journal, store, held)
    _put(store, "d")
    assert not _commit(journal, store, held)
    # The reserve has been given; it has room for more of them, and then it is used up.
    store.remove("things", ("default", "c1"))
    assert _commit(journal, store, held)
    disk.room_bytes = sum(disk.contents().values())
    store.remove("things", ("default", "c2"))
    assert not _commit(journal, store, held)
    names = [each.name for _, each in _restored(disk)]
    assert names == [record.name for record in store.shelf("things").records()] == ["c2"]


def test_a_pod_that_begins_to_stop_counts_as_a_delete_on_a_full_disk():
    _, journal, store, held = _full_disk()
    record = store.shelf("things").get(("default", "c0"))
    assert record is not None
    obj = record.decode()
    obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    # The reserve of these tests is small.
    obj["x"] = ""
    store.put("things", obj, {})
    assert _commit(journal, store, held)


def _restored(disk: FaultyDisk) -> list[tuple[str, Record]]:
    """Return what the next server finds, once there is room again."""
    disk.room_bytes = None
    return list(Journal(disk, served=True).records())


@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_bit_in_any_file_is_detected(seed):
    sizes = _run(Fault()).disk.contents()
    killed = Fault(_steps()[-6], "kill")
    for clean, fault in ((True, Fault()), (False, killed)):
        for name in sizes:
            run = _run(fault)
            disk = run.disk.after_death()
            size = disk.contents().get(name, 0)
            if not size:
                continue
            for offset in range(seed * 14, size, 56):
                run = _run(fault)
                disk = run.disk.after_death()
                disk.flip(name, offset)
                what = f"{name} byte {offset} of {size}, clean: {clean}"
                outcome = _found_or_salvaged(run, disk, what)
                told_apart = name in ("progress", "reserve")
                assert outcome == ("whole" if told_apart else "refused"), what


def test_an_acknowledged_write_that_the_disk_lost_is_detected():
    outcomes = []
    for step in _steps():
        run = _run(Fault(step, "lose"))
        disk = run.disk.after_death()
        if run.told:
            outcomes.append(_found_or_salvaged(run, disk, f"write {step} is lost"))
    assert set(outcomes) == {"whole", "refused"}


@pytest.mark.parametrize("surviving", ["nothing", "first half", "sectors"])
@pytest.mark.parametrize("calls", [5, 20])
def test_no_resource_version_is_reused_when_a_disk_loses_synced_writes(
    surviving, calls, monkeypatch
):
    # Half of these are more than what is written within so many calls.
    monkeypatch.setattr(journal_module, "VERSIONS_AHEAD", 60)
    outcomes = set()
    for step in _steps():
        fault = Fault(step, "lie", calls=calls)
        run = _run(fault)
        # A server that has just begun has told nothing that its mark does not cover.
        if run.ended != "killed" or not 0 < run.opened < step:
            continue
        for seed in range(3 if surviving == "sectors" else 1):
            disk = _run(fault).disk.after_power_cut(surviving, seed)
            outcomes.add(_found_or_salvaged(run, disk, f"{fault} {surviving} {seed}"))
    assert outcomes & {"refused", "older"}


def _objects(journal: Journal) -> Objects:
    return {record.name: record.decode()["value"] for _, record in journal.records()}


@pytest.mark.parametrize(
    "ended", [pytest.param("killed", id="after a kill"), pytest.param("well", id="in good order")]
)
def test_a_full_disk_is_read_only_until_there_is_room(
    ended: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """No object is lost; writes are refused until there is room, and then none comes twice."""
    monkeypatch.setattr(journal_module, "_TRIES_APART", 2)
    run = Run(FaultyDisk(), [])
    cluster = _Cluster(run)
    for number in range(4):
        cluster.commit(number)
    if ended == "well":
        cluster.journal.close()
    disk = run.disk.after_death()
    disk.room_bytes = 0
    later = Run(disk, run.told, told_version=run.told_version)
    full = _Cluster(later)
    assert full.objects() == run.told[-1]
    assert "DIR has no room: the cluster is served as it is kept there" in caplog.text
    for number in range(4, 7):
        full.commit(number)
    assert (full.objects(), len(later.told)) == (run.told[-1], len(run.told))
    disk.room_bytes = None
    full.commit(7)
    full.commit(8)
    assert full.objects()["b8"] == 8
    assert later.told_version > run.told_version
    full.journal.close()
    assert _objects(Journal(disk, served=True)) == later.told[-1]
    assert {"mark", "progress", "reserve"} < set(disk.contents())


def test_a_full_disk_is_opened_with_the_room_that_was_set_aside(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(journal_module, "RESERVE_BYTES", 20_000)
    run = Run(FaultyDisk(), [])
    cluster = _Cluster(run)
    cluster.commit(1)
    disk = run.disk.after_death()
    disk.room_bytes = sum(disk.contents().values())
    again = _Cluster(Run(disk, run.told, told_version=run.told_version))
    assert again.objects() == run.told[-1]
    assert "reserve" not in disk.contents()
    assert not caplog.records
