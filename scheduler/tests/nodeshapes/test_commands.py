"""Scope: what the command of a container says about its run."""

from __future__ import annotations

import pytest

from moorage.api.pod import Container
from moorage.base import aio
from moorage.nodeshapes.commands import CommandRun, course_of
from sandbox.tests.nodeagent.memory_api import MemoryApi
from sandbox.tests.nodeagent.test_agents import phases, play, pod

SH = ["/bin/sh", "-c"]


@pytest.mark.parametrize(
    ("command", "course"),
    [
        pytest.param(["sleep", "300"], CommandRun(300.0), id="sleep"),
        pytest.param(["sleep", "1.5m"], CommandRun(90.0), id="sleep with a unit"),
        pytest.param(["sleep", "infinity"], CommandRun(None), id="sleep for ever"),
        pytest.param(["true"], CommandRun(), id="true"),
        pytest.param(["false"], CommandRun(exit_code=1), id="false"),
        pytest.param([*SH, "exit 3"], CommandRun(exit_code=3), id="exit"),
        pytest.param([*SH, "sleep 5; exit 1"], CommandRun(5.0, 1), id="sleep, then fail"),
        pytest.param([*SH, "echo hi && sleep 2\nexit 0\n"], CommandRun(2.0), id="several lines"),
        pytest.param([*SH, "exit 2; sleep 60"], CommandRun(exit_code=2), id="nothing after exit"),
        pytest.param(
            [*SH, "false && sleep 9"], CommandRun(exit_code=1), id="nothing after a failure"
        ),
        pytest.param([*SH, "false; sleep 9"], CommandRun(9.0), id="a semicolon goes on"),
        pytest.param(
            [*SH, "sleep infinity; exit 1"], CommandRun(None), id="never comes to the exit"
        ),
    ],
)
def test_a_command_says_how_it_runs(command, course):
    assert course_of(Container(name="main", command=command)) == course


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["nginx"],
        ["exit", "1"],
        ["sleep"],
        ["sleep", "soon"],
        [*SH, "exit $CODE"],
        [*SH, "exit 256"],
        [*SH, "sleep 5 & wait"],
        [*SH, "test -f /done || exit 1"],
        [*SH, "python train.py; exit 0"],
        [*SH, "echo 'open"],
        [*SH, "while true; do sleep 1; done"],
    ],
    ids=" ".join,
)
def test_any_other_command_says_nothing(command):
    assert course_of(Container(name="main", command=command)) is None


def test_arguments_belong_to_the_command():
    assert course_of(Container(name="main", command=["sleep"], args=["7"])) == CommandRun(7.0)


def test_arguments_of_the_entrypoint_of_an_image_say_nothing():
    assert course_of(Container(name="main", args=["sleep", "7"])) is None


def test_a_container_runs_as_its_command_says():
    async def scene(api: MemoryApi) -> None:
        body = pod(owner="Job")
        body["spec"]["containers"][0]["command"] = ["sh", "-c", "sleep 20; exit 4"]
        api.put("pods", body)
        await aio.sleep(15)
        assert phases(api)[-1] == "Running"
        await aio.sleep(15)

    api = play(scene)
    assert phases(api) == ["Pending", "Running", "Failed"]
    last = api.get("pods", "web", "default")["status"]["containerStatuses"][0]
    assert last["state"]["terminated"]["exitCode"] == 4
