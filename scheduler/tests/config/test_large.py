"""Configurations that are small to write and large to read are refused in a moment.

A configuration is read again while pods are scheduled, so its size has a bound.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from moorage.base.errors import ConfigError
from moorage.config.load import parse_config

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
LETTERS = "abcdefghij"


def _aliases() -> str:
    lines = [f"- &a [{', '.join(['l'] * 9)}]"]
    for before, letter in pairwise(LETTERS):
        lines.append(f"- &{letter} [{', '.join([f'*{before}'] * 9)}]")
    return "x:\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        pytest.param(_aliases(), "more than 100000 values", id="aliases of aliases"),
        pytest.param(
            "profiles:\n" + "".join(f"- schedulerName: s{n}\n" for n in range(101)),
            "profiles: Too many: 101: must have at most 100 items",
            id="many profiles",
        ),
        pytest.param(
            "extenders:\n" + "".join(f"- urlPrefix: http://a{n}\n" for n in range(101)),
            "extenders: Too many: 101: must have at most 100 items",
            id="many extenders",
        ),
        pytest.param(f"x: {'y' * 5_000_000}\n", "longer than 4194304 bytes", id="a long text"),
        pytest.param("x: [" + "1, " * 120_000 + "1]\n", "more than 100000 values", id="a list"),
    ],
)
def test_a_configuration_over_a_bound_is_refused(body: str, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(HEAD + body)
    assert any(fault in each for each in caught.value.faults)


def test_json_has_the_same_bounds() -> None:
    text = (
        '{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", '
        '"profiles": [' + ", ".join(["{}"] * 100_001) + "]}"
    )
    with pytest.raises(ConfigError, match="more than 100000 values"):
        parse_config(text)


def test_a_hundred_profiles_are_read() -> None:
    body = "profiles:\n" + "".join(f"- schedulerName: s{n}\n" for n in range(100))
    assert len(parse_config(HEAD + body).scheduler.profiles) == 100
