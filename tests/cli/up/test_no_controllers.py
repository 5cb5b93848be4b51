"""`moorage up --no-controllers`: which names it takes, and that it leaves the controllers out."""

from __future__ import annotations

import json
import subprocess

import pytest
from click.testing import CliRunner

from moorage.cli.main import main
from sandbox.tests.sandbox.process import Up


@pytest.mark.parametrize("names", ["replicasets", "job-controller,", "job-controller,,x"])
def test_an_unknown_controller_is_refused_with_the_list(names):
    done = CliRunner().invoke(main, ["up", f"--no-controllers={names}", "--empty"])
    assert done.exit_code == 2
    assert "--no-controllers: no controller is named" in done.output
    assert "deployment-controller, replicaset-controller, " in done.output


@pytest.mark.slow
def test_a_cluster_without_controllers_leaves_a_deployment_alone(tmp_path):
    """The garbage collector is left to another program, too; nodes and scheduler work."""
    with Up(tmp_path, "--no-controllers", "--empty", "--nodes", "1", "-o", "json") as up:
        up.until('"type":"ready"')
        words = [*up.command[:-1], "get", "sa,nodes", "-A", "-o", "json"]
        words += ["--kubeconfig", str(up.kubeconfig)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert [each["kind"] for each in json.loads(done.stdout)["items"]] == ["Node"]
