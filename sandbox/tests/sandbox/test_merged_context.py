"""A sandbox's context in the user's own kubeconfig: put in, taken out, the rest left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from moorage.base.errors import UsageError
from moorage_sandbox.sandbox.merged_context import context_name, put_in, take_out

SANDBOX = """{"clusters": [{"name": "moorage", "cluster": {"server": "https://127.0.0.1:1"}}],
"users": [{"name": "moorage", "user": {"token": "t"}}],
"contexts": [{"name": "moorage", "context": {"cluster": "moorage", "user": "moorage"}}],
"current-context": "moorage"}"""
OTHERS = {
    "apiVersion": "v1",
    "kind": "Config",
    "preferences": {"colors": True},
    "clusters": [{"name": "prod", "cluster": {"server": "https://prod", "unknown": 1}}],
    "users": [{"name": "prod", "user": {"exec": {"command": "login"}}}],
    "contexts": [{"name": "prod", "context": {"cluster": "prod", "user": "prod"}}],
    "current-context": "prod",
}
ENTRIES = {
    "clusters": {
        "name": "moorage-blue",
        "cluster": {
            "server": "https://127.0.0.1:1",
            "extensions": [{"name": "moorage.dev/sandbox", "extension": {}}],
        },
    },
    "users": {"name": "moorage-blue", "user": {"token": "t"}},
    "contexts": {
        "name": "moorage-blue",
        "context": {"cluster": "moorage-blue", "user": "moorage-blue"},
    },
}


def read(file: Path) -> object:
    return yaml.safe_load(file.read_text())


def test_the_context_is_called_by_the_sandboxs_name() -> None:
    assert [context_name(""), context_name("blue")] == ["moorage", "moorage-blue"]


def test_entries_are_added_and_removed_and_others_stay(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(OTHERS))
    file.chmod(0o640)
    put_in(file, "moorage-blue", SANDBOX)
    assert read(file) == {
        **OTHERS,
        **{kind: [*OTHERS[kind], entry] for kind, entry in ENTRIES.items()},
    }
    assert file.stat().st_mode & 0o777 == 0o640
    put_in(file, "moorage-blue", SANDBOX.replace(":1", ":2"))
    take_out(file, "moorage-blue")
    assert read(file) == OTHERS
    assert [each.name for each in tmp_path.iterdir()] == ["config"]


def test_the_only_context_is_the_current_one_while_the_sandbox_runs(tmp_path: Path) -> None:
    file = tmp_path / ".kube" / "config"
    put_in(file, "moorage-blue", SANDBOX)
    whole = {kind: [entry] for kind, entry in ENTRIES.items()}
    begin = {"apiVersion": "v1", "kind": "Config"}
    assert read(file) == {**begin, **whole, "current-context": "moorage-blue"}
    assert file.stat().st_mode & 0o777 == 0o600
    take_out(file, "moorage-blue")
    empty: dict[str, object] = {kind: [] for kind in ENTRIES}
    assert read(file) == {**begin, **empty, "current-context": ""}


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    kept, file = tmp_path / "kept", tmp_path / "config"
    kept.write_text("{}")
    file.symlink_to(kept)
    put_in(file, "moorage", SANDBOX)
    assert file.is_symlink()
    assert "moorage" in kept.read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "contexts: [{name: moorage, context: {cluster: mine}}]",
            "{file} has a context 'moorage' that is no sandbox's; name the sandbox with --name",
            id="an entry of this name that somebody else made",
        ),
        pytest.param("- 1", "{file} is not a kubeconfig", id="another kind of file"),
    ],
)
def test_a_kubeconfig_that_may_not_be_changed_is_left_alone(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        put_in(file, "moorage", SANDBOX)
    assert str(refused.value) == message.format(file=file)
    assert file.read_text() == text


def test_entries_changed_by_another_program_are_not_removed(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("contexts: [{name: moorage, context: {cluster: mine}}]")
    take_out(file, "moorage")
    assert "mine" in file.read_text()


def test_a_file_that_kubectl_is_changing_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "config"
    (tmp_path / "config.lock").touch()
    with pytest.raises(UsageError, match="is being changed by another program"):
        put_in(file, "moorage", SANDBOX)
    assert not file.exists()
