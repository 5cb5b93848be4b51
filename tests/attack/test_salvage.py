"""What `--salvage` tells: each part that is gone, and no object goes back to what it was.

The files are sound in themselves here, but belong to another time: groups, logs, snapshots and
marks are cut out, repeated, or put back from an older copy. Damaged bytes are in `test_damage`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from moorage.base.errors import UsageError
from moorage_sandbox.storage.journal import journal as journal_module
from moorage_sandbox.storage.journal.files import Directory
from moorage_sandbox.storage.journal.groups import Group, read_groups
from moorage_sandbox.storage.journal.journal import Journal
from moorage_sandbox.storage.journal.mark import _checksum
from moorage_sandbox.storage.store import Store, Write

COUNT = 8


class Kept:
    """A store whose writes go to a journal, one in each group."""

    def __init__(self, path: Path) -> None:
        path.mkdir()
        self.path = path
        self.journal = Journal(Directory(path))
        self.store = Store()
        self._held: list[Write] = []
        self.journal.fill([], self.store.version)
        self.store.hold_back(self._held.append)

    def put(self, name: str, value: int) -> None:
        meta = {"namespace": "default", "name": name}
        self.store.put("things", {"metadata": meta, "value": value, "padding": "x" * 700}, {})
        self.journal.commit(self._held)
        self.store.publish(self._held)
        self._held.clear()
        if self.journal.compaction_due:
            self.journal.compact()


def _served(path: Path) -> Kept:
    """Return a cluster that was killed: ``a`` was written first and last, the others once."""
    kept = Kept(path)
    kept.put("a", 1)
    for number in range(2, COUNT):
        kept.put(f"b{number}", number)
    kept.put("a", COUNT)
    return kept


def _groups(path: Path, name: str) -> list[tuple[Group, bytes]]:
    data = (path / name).read_bytes()
    found, at = [], 0
    with (path / name).open("rb") as file:
        for group in read_groups(file):
            found.append((group, data[at : at + group.size]))
            at += group.size
    return found


def _written(path: Path, name: str, groups: list[tuple[Group, bytes]]) -> None:
    (path / name).write_bytes(b"".join(raw for _, raw in groups))


def _cut_out(path: Path) -> None:
    groups = _groups(path, "log-1")
    _written(path, "log-1", groups[:3] + groups[5:])


def _repeated(path: Path) -> None:
    groups = _groups(path, "log-1")
    _written(path, "log-1", [*groups, groups[1]])


def _beginning_cut_out(path: Path) -> None:
    _written(path, "log-1", _groups(path, "log-1")[3:])


def _no_snapshot(path: Path) -> None:
    (path / "snapshot-1").unlink()
    (path / "mark").unlink()


def _end_of_snapshot(path: Path) -> None:
    _written(path, "snapshot-1", _groups(path, "snapshot-1")[:-1])


def _values(journal: Journal) -> dict[str, int]:
    return {record.name: record.decode()["value"] for _, record in journal.records()}


ALL = {"a": COUNT} | {f"b{number}": number for number in range(2, COUNT)}


@pytest.mark.parametrize(
    ("change", "refused", "told", "gone"),
    [
        pytest.param(
            _cut_out,
            "log-1 does not go on from what was before it",
            "lost: a part of log-1: writes of resourceVersion",
            {"b3", "b4"},
            id="groups cut out of a log",
        ),
        pytest.param(
            _repeated,
            "log-1 does not go on from what was before it",
            "left out: 1 groups of log-1: they are kept already",
            set(),
            id="an old group repeated at the end of a log",
        ),
        pytest.param(
            _beginning_cut_out,
            "log-1 does not go on from what was before it",
            "lost: a part of log-1: writes of resourceVersion",
            {"b2"},
            id="the beginning of a log cut out",
        ),
        pytest.param(
            _no_snapshot,
            "mark is missing",
            "lost: there is no snapshot, with all it held",
            set(),
            id="neither a mark nor a snapshot",
        ),
        pytest.param(
            _end_of_snapshot,
            "snapshot-1 has lost its end",
            "lost: a part of snapshot-1: objects between the first and the last",
            set(),
            id="a snapshot without its last group",
        ),
    ],
)
def test_salvaging_reports_lost_records_and_restores_no_old_ones(
    change: Callable[[Path], None], refused: str, told: str, gone: set[str], tmp_path: Path
):
    kept = _served(tmp_path / "data")
    change(kept.path)
    with pytest.raises(UsageError, match=refused):
        Journal(Directory(kept.path), served=True)
    salvaged = Journal(Directory(kept.path), served=True, salvaging=True)
    assert any(line.startswith(told) for line in salvaged.report), salvaged.report
    assert _values(salvaged) == {name: each for name, each in ALL.items() if name not in gone}
    assert salvaged.version() > kept.store.version


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "LOG_BYTES", 2500)
    monkeypatch.setattr(journal_module, "VERSIONS_AHEAD", 4)


@pytest.mark.usefixtures("_small")
def test_an_older_mark_does_not_prevent_salvaging_a_later_log(tmp_path: Path):
    kept = Kept(tmp_path / "data")
    kept.put("a", 1)
    shutil.copy(kept.path / "mark", tmp_path / "mark")
    for number in range(2, COUNT):
        kept.put(f"b{number}", number)
    kept.put("a", COUNT)
    assert not (kept.path / "snapshot-1").exists(), "compacted meanwhile"
    shutil.copy(tmp_path / "mark", kept.path / "mark")
    with pytest.raises(UsageError, match="snapshot-1 is missing"):
        Journal(Directory(kept.path), served=True)
    salvaged = Journal(Directory(kept.path), served=True, salvaging=True)
    assert "damaged: mark is older than the logs" in salvaged.report
    assert _values(salvaged) == ALL
    # How many versions were given out by then, nobody knows: far beyond all of them.
    assert salvaged.version() > kept.store.version + 1_000_000


def test_a_mark_of_a_newer_format_is_reported_as_such(tmp_path: Path):
    kept = _served(tmp_path / "data")
    text = msgspec.json.encode({"format": 3, "something": "new"})
    (kept.path / "mark").write_bytes(text + b"\n" + _checksum(text) + b"\n")
    for salvaging in (False, True):
        with pytest.raises(UsageError, match="has format 3, and this version of moorage writes"):
            Journal(Directory(kept.path), served=True, salvaging=salvaging)
