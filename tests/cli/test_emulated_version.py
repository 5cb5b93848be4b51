"""``--emulated-version`` on the commands that take it, and what a file means under 1.37."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Type

_FILE = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
_LIST = (
    '--emulated-version: Unsupported value: "1.38": supported values: "1.36", "1.37"; 1.37 may '
    "also be written v1.37, kube=1.37 or kube=v1.37"
)
_COMMANDS = {
    "run": ("run", "--kubeconfig", "absent"),
    "up": ("up", "--exit-when-settled"),
    "config check": ("config", "check", "file.yaml"),
    "config defaults": ("config", "defaults"),
    "conformance": ("conformance", "."),
    "simulate": ("simulate", "--nodes", "nodes.yaml", "--pods", "pods.yaml"),
    "shadow": ("shadow",),
}


@pytest.mark.parametrize("words", _COMMANDS.values(), ids=_COMMANDS)
def test_another_version_is_refused_with_the_list(bare: Type, words: tuple[str, ...]) -> None:
    Path("file.yaml").write_text(_FILE)
    Path("nodes.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n")
    Path("pods.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")
    result = bare(*words, "--emulated-version", "1.38")
    assert result.exit_code == 2
    assert _LIST in result.stderr


@pytest.mark.parametrize("form", ["1.37", "v1.37", "kube=1.37", "kube=v1.37"])
def test_the_defaults_name_the_version_in_one_spelling(bare: Type, form: str) -> None:
    result = bare("config", "defaults", "--emulated-version", form, "-o", "json")
    own = json.loads(result.stdout)[1]
    assert (own["emulatedVersion"], own["minCompatibilityVersion"]) == ("1.37", "")


def test_a_file_means_the_same_under_its_own_version(bare: Type) -> None:
    Path("file.yaml").write_text(_FILE)
    result = bare("config", "check", "file.yaml", "--emulated-version", "v1.36")
    assert result.stdout == (
        "file.yaml can be used; it serves default-scheduler\n"
        "It means the same under 1.36 and 1.36\n"
    )


def test_a_check_lists_what_1_37_reads_otherwise(bare: Type) -> None:
    Path("file.yaml").write_text(_FILE)
    words = ("--emulated-version", "1.37", "--feature-gates", "GenericWorkload=true")
    result = bare("config", "check", "file.yaml", *words, "-o", "json")
    found = json.loads(result.stdout)
    assert (found["ownVersion"], found["emulatedVersion"]) == ("1.36", "1.37")
    rows = {(row["kind"], row["name"]): row for row in found["differences"]}
    assert rows["gate", "GangScheduling"] == {
        "kind": "gate",
        "name": "GangScheduling",
        "before": "off, alpha",
        "now": "a part of GenericWorkload",
        "effect": "pod groups are placed all or none",
    }
    assert rows["gate", "NodeDeclaredFeatures"]["now"] == "on, ga, locked"
    assert rows["plugin", "default-scheduler: VolumeBinding"] == {
        "kind": "plugin",
        "name": "default-scheduler: VolumeBinding",
        "before": "StorageCapacityScoring off",
        "now": "StorageCapacityScoring on",
        "effect": "scores by free storage",
    }
    assert rows["plugin", "default-scheduler: GangScheduling"] == {
        "kind": "plugin",
        "name": "default-scheduler: GangScheduling",
        "before": "does not run",
        "now": "runs",
        "effect": "",
    }
