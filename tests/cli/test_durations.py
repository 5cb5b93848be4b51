"""Options that take a time: every command reads them by one parser."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from moorage.api.schedules.durations import parse_seconds
from moorage.cli.main import main
from moorage.cli.options import DurationType

# Flags of kube-scheduler, which takes no number without a unit; a number of seconds a second; and
# texts that the autoscaler reads by the same parser.
_ELSEWHERE = ("moorage run", "moorage time speed", "moorage up --speed")
_WORDS = ("SECONDS", "DURATION", "TIME", "S")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("90s", 90.0, id="seconds"),
        pytest.param("5m", 300.0, id="minutes"),
        pytest.param("1h30m", 5400.0, id="two units"),
        pytest.param("250ms", 0.25, id="milliseconds"),
        pytest.param("120", 120.0, id="a number alone counts seconds"),
        pytest.param("2.5", 2.5, id="a fraction alone counts seconds"),
    ],
)
def test_a_duration_is_read_with_units_or_in_seconds(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds
    assert DurationType().convert(text, None, None) == seconds


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        pytest.param(DurationType(), "1y", "invalid duration '1y'", id="an unknown unit"),
        pytest.param(DurationType(), "-1s", "at least 0s", id="a negative one"),
        pytest.param(DurationType(above=True), "0s", "longer than 0s", id="none at all"),
        pytest.param(DurationType(3), "2s", "at least 3s", id="too short"),
        pytest.param(DurationType(whole=True), "1500ms", "write whole seconds", id="a fraction"),
        pytest.param(DurationType(), "nan", "invalid duration 'nan'", id="no number"),
    ],
)
def test_a_wrong_duration_is_refused(kind: DurationType, text: str, message: str) -> None:
    with pytest.raises(click.BadParameter, match=message):
        kind.convert(text, None, None)


def test_whole_seconds_are_an_int() -> None:
    assert isinstance(DurationType(whole=True).convert("2m", None, None), int)


def test_every_option_that_takes_a_time_has_the_one_type() -> None:
    others = [
        where
        for where, parameter in _parameters(main, "moorage")
        if _takes_a_time(parameter)
        and not isinstance(parameter.type, DurationType)
        and not where.startswith(_ELSEWHERE)
    ]
    # Read by `idle_seconds_of`, in the process of the autoscaler.
    assert others == ["moorage scale auto --idle", "moorage up --autoscale-idle"]


def _takes_a_time(parameter: click.Parameter) -> bool:
    words = f"{parameter.name}".split("_")
    return parameter.metavar in _WORDS or "seconds" in words or "timeout" in words


def _parameters(command: click.Command, path: str) -> Iterator[tuple[str, click.Parameter]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _parameters(inner, f"{path} {name}")
    else:
        for parameter in command.params:
            yield f"{path} {parameter.opts[-1]}", parameter
