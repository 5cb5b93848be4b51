"""Which kubeconfig files `moorage up` writes over: its own, changed by kubectl or not."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from moorage.base.errors import UsageError
from moorage_sandbox.sandbox.up import write_private

# What `kubectl config set-context --current --namespace=team` makes of ours.
CHANGED = """\
apiVersion: v1
clusters:
- cluster: {server: "https://127.0.0.1:1"}
  name: moorage
contexts:
- context: {cluster: moorage, namespace: team, user: moorage}
  name: moorage
current-context: moorage
kind: Config
users:
- name: moorage
  user: {token: abc}
"""


@pytest.mark.parametrize(
    "before",
    [
        pytest.param("", id="an empty file"),
        pytest.param('{"current-context":"moorage"}', id="ours"),
        pytest.param(CHANGED, id="ours after kubectl config set-context"),
    ],
)
def test_a_kubeconfig_of_moorage_is_overwritten(tmp_path, before):
    path: Path = tmp_path / "config"
    path.write_text(before)
    write_private(path, "new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "before",
    [
        pytest.param("current-context: production\n", id="another cluster's"),
        pytest.param(
            CHANGED.replace("contexts:", "- name: production\ncontexts:", 1),
            id="ours and another one's, whichever is the current one",
        ),
        pytest.param(CHANGED.replace("  name: moorage\ncontexts", "  name: x\ncontexts"), id="x"),
        pytest.param('{"current-context":"x"}', id="another one's in JSON"),
        pytest.param("not a kubeconfig", id="text"),
        pytest.param("a: [", id="nothing that can be read"),
    ],
)
def test_other_files_are_not_overwritten(tmp_path, before):
    path: Path = tmp_path / "config"
    path.write_text(before)
    with pytest.raises(UsageError, match="is a kubeconfig of another cluster, or something else"):
        write_private(path, "new")
    assert path.read_text() == before
