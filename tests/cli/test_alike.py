"""All commands are alike: help, forms of ``-o``, exit codes, one line about a failure.

The commands come from the command line itself, so a new one is tested without being named here.
Left out: what each command prints (tests of the command).
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pytest
import yaml

from moorage.cli import session
from moorage.cli.main import main
from tests.cli.conftest import Type, errors

FORMS = ("text", "wide", "json", "yaml", "name")
# Commands without a report, and why. They go on until told to end, write a script or a log, or say
# what they did, as kubectl does.
NO_REPORT = {
    "moorage completion": "prints a script for the shell",
    "moorage cordon": "says what it did",
    "moorage dashboard": "serves a page until told to end",
    "moorage example-extender": "serves until told to end",
    "moorage drain": "says what it does",
    "moorage group-controller": "keeps the status of groups until told to end",
    "moorage logs": "prints a log",
    "moorage mcp": "answers an agent until its input ends",
    "moorage nodes": "plays nodes until told to end",
    "moorage report": "writes a page",
    "moorage run": "schedules until told to end",
    "moorage scale auto": "adds and removes nodes until told to end",
    "moorage uncordon": "says what it did",
}
# `up` goes on until told to end, too; its -o says how it shows that.
SHOWS_ITS_PROGRESS = "moorage up"


def commands(
    command: click.Command, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command that is listed in a help, with its words."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    if command.invoke_without_command:
        yield path, command
    context = click.Context(command)
    for name in command.list_commands(context):
        each = command.get_command(context, name)
        assert each is not None
        if not each.hidden:
            yield from commands(each, (*path, name))


def groups(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(command, click.Group):
        yield path
        context = click.Context(command)
        for name in command.list_commands(context):
            each = command.get_command(context, name)
            assert each is not None
            yield from groups(each, (*path, name))


ALL = list(commands(main, ("moorage",)))


def each_of(found: Iterable[tuple[tuple[str, ...], click.Command]]) -> pytest.MarkDecorator:
    params = [pytest.param(path, command, id=" ".join(path)) for path, command in found]
    return pytest.mark.parametrize(("path", "command"), params)


every_command = each_of(ALL)


def option(command: click.Command, name: str) -> click.Option | None:
    found = [each for each in command.params if name in each.opts]
    return found[0] if found and isinstance(found[0], click.Option) else None


def words_for(command: click.Command) -> list[str]:
    """Return a value for everything that a command cannot go without."""
    words: list[str] = []
    for each in command.params:
        if each.required and isinstance(each, click.Option):
            words += [each.opts[0], value_of(each)]
        elif each.required:
            words.append(value_of(each))
    if option(command, "--count"):
        words += ["--count", "1"]
    if option(command, "--until-pods"):
        words += ["--for", "1s"]  # it watches until it is told to end
    if option(command, "--grace-period"):
        words += ["pod/a"]
    if command.name == "object":  # it takes a name or a selector
        words += ["node/a"]
    return words


def value_of(parameter: click.Parameter) -> str:
    if isinstance(parameter.type, click.Choice):
        return str(parameter.type.choices[0])
    if parameter.metavar == "MIN:MAX":
        return "1:2"
    if parameter.name == "picture":
        return "x.svg"
    if isinstance(parameter.type, click.FloatRange | click.IntRange):
        return "2"  # as many nodes as the sandbox has, so that `scale` leaves it alone
    if isinstance(parameter.type, click.Path) or parameter.metavar == "FILE":
        return "pod.json"
    return "1:2" if parameter.metavar == "MIN:MAX" else "pod/a"


@every_command
def test_help_has_an_example(bare: Type, path: tuple[str, ...], command: click.Command) -> None:
    result = bare(*path[1:], "--help")
    assert (result.exit_code, result.stderr) == (0, "")
    assert re.search(
        rf"^ *Examples?\b.*:$\n(.*\n)*? .*{' '.join(path)}", result.stdout, re.MULTILINE
    )
    assert max(map(len, result.stdout.splitlines())) <= 100


@pytest.mark.parametrize("path", [pytest.param(p, id=" ".join(p)) for p in groups(main, ())])
def test_the_summaries_of_a_group_are_whole(bare: Type, path: tuple[str, ...]) -> None:
    result = bare(*path, "--help")
    assert result.exit_code == 0
    assert "..." not in result.stdout.partition("\nCommands:\n")[2].partition("\n\n")[0]


@every_command
def test_an_unknown_option_ends_with_2_and_one_line(
    bare: Type, path: tuple[str, ...], command: click.Command
) -> None:
    result = bare(*path[1:], "--no-such-option")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"error: no such option '--no-such-option'; see {shown(path)} --help\n"


def shown(path: tuple[str, ...]) -> str:
    return " ".join(("main", *path[1:]))  # the name that click's test runner gives the program


@every_command
def test_reports_take_the_same_forms(
    bare: Type, path: tuple[str, ...], command: click.Command
) -> None:
    output = option(command, "-o")
    name = " ".join(path)
    if name in NO_REPORT:
        assert output is None
        return
    assert output is not None, "a command that reports takes -o"
    assert "--output" in output.opts
    assert isinstance(output.type, click.Choice)
    taken = [str(each) for each in output.type.choices]
    if name == SHOWS_ITS_PROGRESS:
        assert "json" in taken
    else:
        assert {"json", "yaml"} <= set(taken) <= set(FORMS)
        assert taken == [form for form in FORMS if form in taken]
        assert output.default == taken[0] if "text" in taken else output.default == "yaml"
    for form in {*FORMS, "table"} - set(taken):
        result = bare(*path[1:], "-o", form)
        listed = ", ".join(f"'{each}'" for each in taken)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == (
            f"error: invalid value for '-o' / '--output': '{form}' is not one of {listed}; "
            f"see {shown(path)} --help\n"
        )


def unused_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


# Programs of a cluster wait for a server that is not there, as kube-scheduler does.
WAITS = ("moorage run", "moorage group-controller")
# An agent's calls run other commands; the options of this one are passed on.
ASKS_BY_COMMANDS = "moorage mcp"
ASKS_A_SERVER = [
    (path, command)
    for path, command in ALL
    if option(command, "--context") and " ".join(path) not in (*WAITS, ASKS_BY_COMMANDS)
]


@each_of(ASKS_A_SERVER)
def test_a_server_that_is_away_ends_with_1_and_one_line(
    bare: Type,
    path: tuple[str, ...],
    command: click.Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "_RECORD_SECONDS", 0.0)
    server = f"https://127.0.0.1:{unused_port()}"
    away = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    Path("away").write_text(json.dumps(away))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    Path("pod.json").write_text(json.dumps(pod))
    words = [*path[1:], *words_for(command), "--kubeconfig", "away"]
    words += [flag for flag in ("--server", "--force") if option(command, flag)]
    result = bare(*words)
    assert result.exit_code == 1, result.output
    told = errors(result.stderr).splitlines()
    assert len(told) == (2 if "apply" in path else 1), "apply tells of each object, then the sum"
    assert told[0].startswith("error: ")
    assert server.removeprefix("https://") in told[0]
    assert result.stdout == ""


@pytest.mark.slow
@each_of((path, command) for path, command in ASKS_A_SERVER if option(command, "-o"))
def test_json_is_one_document_and_nothing_else(
    typed: Type, path: tuple[str, ...], command: click.Command
) -> None:
    kept = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "alike"}}
    Path("pod.json").write_text(json.dumps(kept))
    result = typed(*path[1:], *words_for(command), "-o", "json")
    assert result.exit_code in {0, 1, 2}
    if result.exit_code == 0:
        assert isinstance(json.loads(result.stdout), dict)
        assert [line for line in result.stderr.splitlines() if line.startswith("error: ")] == []
    else:
        lines = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
        assert lines[0].startswith("error: ")
        assert result.stdout == "" or isinstance(json.loads(result.stdout), dict)


@each_of(
    (path, command)
    for path, command in ALL
    if option(command, "--name") and " ".join(path) != SHOWS_ITS_PROGRESS
)
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_report_is_one_document_on_failure_too(
    bare: Type, path: tuple[str, ...], command: click.Command, form: str
) -> None:
    words = words_for(command)
    if option(command, "--timeout"):
        words += ["--timeout", "0"]
    result = bare(*path[1:], *words, "--name", "nosuch", "-o", form)
    assert result.exit_code == 1
    assert result.stderr == (
        "error: no sandbox nosuch runs in this directory; "
        "`moorage up -d --name nosuch` starts one\n"
    )
    assert isinstance(
        json.loads(result.stdout) if form == "json" else yaml.safe_load(result.stdout), dict
    )
