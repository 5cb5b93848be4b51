"""`moorage config check` takes and refuses what kube-scheduler does, rule by rule.

The rules are in ``config_rules.yaml``. Left out: the files that an extender's TLS names, which are
where the scheduler runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from moorage.api.yaml_text import read_one
from moorage.base.errors import ConfigError
from moorage.cli.checking import check_text

_HEAD: Final = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
_RULES: Final[dict[str, Any]] = read_one(
    Path(__file__).with_name("config_rules.yaml").read_text(encoding="utf-8")
)


def _faults(text: str) -> Sequence[str]:
    try:
        return check_text(_HEAD + text).faults
    except ConfigError as error:  # the text cannot be read at all
        return list(error.faults)


@pytest.mark.parametrize("text", _RULES["taken"])
def test_what_kube_scheduler_takes_is_taken(text: str) -> None:
    assert _faults(text) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [pytest.param(each["config"], each["fault"], id=each["config"]) for each in _RULES["refused"]],
)
def test_what_ends_kube_scheduler_is_refused(text: str, fault: str) -> None:
    assert _faults(text)[:1] == [fault]


def test_the_defaults_of_kube_scheduler_fill_what_is_empty() -> None:
    """A duration of zero and an empty name are as good as none."""
    empty = (
        "leaderElection: {leaseDuration: 0s, renewDeadline: 0s, retryPeriod: 0s, resourceLock: '',"
        " resourceName: '', resourceNamespace: ''}\nprofiles: [null]\nparallelism: null\n"
    )
    assert check_text(_HEAD + empty).config == check_text(_HEAD).config
