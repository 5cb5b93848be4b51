"""The server of ``moorage up`` plays the version that its scheduler emulates."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage_sandbox.cli.up.configuration import checked

FILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
---
apiVersion: moorage.dev/v1alpha1
kind: MoorageConfiguration
emulatedVersion: "1.37"
"""


@pytest.mark.parametrize(
    ("text", "flags", "version"),
    [
        pytest.param("", {}, "1.36", id="nobody names a version"),
        pytest.param("", {"emulated-version": "kube=v1.37"}, "1.37", id="the flag"),
        pytest.param(FILE, {}, "1.37", id="the file"),
        pytest.param(FILE, {"emulated-version": "1.36"}, "1.36", id="the flag over the file"),
        pytest.param(FILE, {"feature-gates": "DRADeviceTaintRules=false"}, "1.37", id="a gate"),
    ],
)
def test_the_version_that_is_played(
    tmp_path: Path, text: str, flags: dict[str, object], version: str
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    names, played, kinds = checked(path if text else None, (), flags)
    assert (names, played, kinds) == (frozenset({"default-scheduler"}), version, [])


@pytest.mark.parametrize(
    ("profile", "kinds"),
    [
        pytest.param("coscheduling", ["podgroups"], id="pod groups"),
        pytest.param("elastic-quota", ["elasticquotas"], id="elastic quotas"),
        pytest.param("packing", [], id="neither"),
    ],
)
def test_the_kinds_of_scheduler_plugins_that_a_configuration_needs(
    profile: str, kinds: list[str]
) -> None:
    path = Path("examples/profiles") / f"{profile}.yaml"
    assert checked(path, (), {}).custom_kinds == kinds


def test_groups_need_the_kind_of_their_objects() -> None:
    assert checked(None, (), {}, groups=True).custom_kinds == ["podgroups"]
