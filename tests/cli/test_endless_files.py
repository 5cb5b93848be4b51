"""Commands that are given a file without an end say so in a line, and end."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from moorage.base import files
from moorage.cli.main import main

ENDLESS = "/dev/zero"


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds of a size that is read at once; what is read is thrown away anyway."""
    real = files.read_stream
    monkeypatch.setattr(files, "read_stream", lambda stream, most: real(stream, min(most, 2**24)))


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("config check {}", id="a configuration"),
        pytest.param("run --config {}", id="a configuration of a scheduler"),
        pytest.param("run --kubeconfig {}", id="a kubeconfig of a scheduler"),
        pytest.param("get pods --kubeconfig {}", id="a kubeconfig"),
        pytest.param("apply -f {}.yaml --kubeconfig {kubeconfig}", id="a manifest"),
        pytest.param("what-if --add 1xcpu=1 --from {}", id="objects of a what-if"),
        pytest.param("explain pod p --from {}", id="objects of an explanation"),
        pytest.param("up --nodes-from {}", id="nodes"),
    ],
)
def test_a_file_without_an_end_is_refused(words: str, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("apiVersion: v1\nkind: Config\n")
    (tmp_path / "zero.yaml").symlink_to(ENDLESS)
    path = str(tmp_path / "zero.yaml")
    command = words.replace("{}.yaml", "{}").format(path, kubeconfig=kubeconfig)
    found = CliRunner().invoke(main, command.split())
    assert found.exit_code == 2, found.output
    assert "it is larger than" in found.output
