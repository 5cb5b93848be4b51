"""A directory that holds a cluster: one server at a time, the same cluster every time."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
import pytest

from moorage.base.clock import ManualClock
from moorage.base.errors import UsageError
from moorage_sandbox.sandbox.data_directory import DataDirectory, Identity
from sandbox.tests.sandbox.process import Up


def _open(path: Path) -> DataDirectory:
    return DataDirectory(path, clock=ManualClock())


def _fill(directory: DataDirectory) -> None:
    """Keep a cluster without objects."""
    journal = directory.open_journal(ManualClock())
    journal.fill([], 1)
    journal.close()


def test_the_identity_of_a_cluster_stays_the_same_and_private(tmp_path):
    path = tmp_path / "new" / "data"
    first = _open(path)
    _fill(first)
    first.keep_port(1234)
    first.close()
    second = _open(path)
    assert second.identity == first.identity
    assert second.identity.port == 1234
    clock = ManualClock()
    assert second.identity.authority(clock).certificate == first.identity.certificate
    second.close()
    assert set(_modes(path).values()) == {0o600}
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def _modes(path: Path) -> dict[str, int]:
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in sorted(path.iterdir())}


def test_files_in_an_existing_directory_are_readable_by_their_owner_only(tmp_path, caplog):
    path = tmp_path / "data"
    path.mkdir(mode=0o755)
    before = os.umask(0)
    try:
        directory = _open(path)
        _fill(directory)
        directory.keep_port(1234)
        directory.close()
    finally:
        os.umask(before)
    modes = _modes(path)
    assert sorted(modes) == ["identity.json", "lock", "log-1", "mark", "reserve", "snapshot-1"]
    assert set(modes.values()) == {0o600}
    assert caplog.text == ""
    # Rights that were given since are taken away, and told.
    (path / "log-1").chmod(0o644)
    _open(path).close()
    assert set(_modes(path).values()) == {0o600}
    assert "log-1 could be read by others" in caplog.text


def test_a_link_is_not_followed(tmp_path):
    path = tmp_path / "data"
    path.mkdir()
    (tmp_path / "other").write_text("theirs")
    (path / "snapshot-1").symlink_to(tmp_path / "other")
    with pytest.raises(UsageError, match="snapshot-1 is a link"):
        _open(path)
    assert (tmp_path / "other").read_text() == "theirs"


def test_a_second_server_is_refused_with_the_process_that_has_the_directory(tmp_path):
    first = _open(tmp_path / "data")
    with pytest.raises(UsageError, match=r"data is in use by another server \(process \d+\)"):
        _open(tmp_path / "data")
    first.close()
    _open(tmp_path / "data").close()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


def _other_key(path: Path) -> None:
    found = msgspec.json.decode(path.read_bytes(), type=Identity)
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(found, key=b"no key")))


def _later(path: Path) -> None:
    found = msgspec.json.decode(path.read_bytes(), type=Identity)
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(found, format=2)))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        pytest.param(_cut, "identity.json is damaged", id="half a file"),
        pytest.param(_other_key, "identity.json is damaged", id="a key that is none"),
        pytest.param(_later, "has format 2; this version reads 1", id="a later version's"),
        pytest.param(Path.unlink, "identity.json is missing", id="no file, but a cluster"),
    ],
)
def test_an_unusable_identity_is_refused_with_the_reason(tmp_path, spoil, words):
    directory = _open(tmp_path)
    _fill(directory)
    directory.close()
    spoil(tmp_path / "identity.json")
    with pytest.raises(UsageError, match=words):
        _open(tmp_path)
    # It has let go of the lock.
    with pytest.raises(UsageError, match=words):
        _open(tmp_path)


def test_a_data_directory_that_cannot_be_created_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot keep a cluster in"):
        _open(tmp_path / "file" / "data")


@pytest.mark.slow
def test_up_goes_on_with_the_nodes_and_pods_it_had_under_the_kubeconfig_it_gave(tmp_path):
    arguments = ("--data", "data", "-o", "lines", "--exit-when-settled")
    with Up(tmp_path, "--nodes", "3", *arguments) as first:
        assert first.wait() == 0
    kubeconfig = (tmp_path / ".moorage" / "kubeconfig").read_text()
    with Up(tmp_path, *arguments) as second:
        second.until("3 nodes")
        assert second.wait() == 0
    again = (tmp_path / ".moorage" / "kubeconfig").read_text()
    # The client's certificate is signed anew; the old one is as good, by the same authority.
    server, before = (
        msgspec.json.decode(text)["clusters"][0]["cluster"] for text in (again, kubeconfig)
    )
    assert server == before
    for run in (first, second):
        assert "30 pods" in run.output[-1]
