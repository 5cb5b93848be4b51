"""Scope: probes, hooks, environment, security contexts, mounts and volumes of pods.

The specs and their messages are in ``pod_rules.yaml``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from moorage.api.yaml_text import read_one
from scheduler.tests.kinds.builders import create_errors, pod

_RULES: Final[dict[str, Any]] = read_one(
    Path(__file__).with_name("pod_rules.yaml").read_text(encoding="utf-8")
)


def _errors(spec: str) -> list[str]:
    return create_errors("pods", {**pod(), "spec": read_one(spec)})


@pytest.mark.parametrize("spec", _RULES["taken"])
def test_a_spec_is_taken(spec: str) -> None:
    assert _errors(spec) == []


@pytest.mark.parametrize(
    ("spec", "messages"),
    [pytest.param(each["spec"], each["messages"], id=each["spec"]) for each in _RULES["refused"]],
)
def test_a_spec_is_refused(spec: str, messages: list[str]) -> None:
    assert _errors(spec) == messages
