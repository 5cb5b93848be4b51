"""``moorage time``: show, stop, step and speed up the time of a sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from moorage.base.running_sandboxes import TIME_PATH
from moorage.cli.command_group import CommandGroup
from moorage.cli.options import DurationType, kubeconfig_option, output_option

if TYPE_CHECKING:
    from moorage.cli.render import Form
    from moorage.cli.session import Session

_EPILOG = """
\b
Examples, with a cluster started by `moorage up --speed 0`:
  moorage time step 1m             a minute passes, in three seconds
  moorage time step 1h --at 600    an hour, in six seconds
  moorage time speed 1             on as usual
  moorage time speed 0             stop
  moorage time show
"""
_SPEED_MAX = 1000
# Fast enough to be useful, slow enough for heartbeats to be in time on a busy machine.
_STEP_SPEED = 20.0
_LOOK_SECONDS = 0.05


_SHOW_EPILOG = """
\b
Examples:
  moorage time show
  moorage time show -o json
"""
_STEP_EPILOG = """
\b
Examples:
  moorage time step 1m             a minute passes, in three seconds
  moorage time step 1h --at 600    an hour, in six seconds
"""
_SPEED_EPILOG = """
\b
Examples:
  moorage time speed 1             on as usual
  moorage time speed 0             stop
"""


@click.group(cls=CommandGroup, epilog=_EPILOG)
def time() -> None:
    """Stop, step and speed up the time of a sandbox, and see how it runs.

    The cluster has to be started with `moorage up --speed 0`.
    """


@time.command(epilog=_SHOW_EPILOG)
@output_option()
@kubeconfig_option
def show(*, output: Form, kubeconfig: str, context: str) -> None:
    """Tell the cluster's time, and how fast it runs."""
    _ask(None, output, kubeconfig, context)


@time.command(epilog=_STEP_EPILOG)
@click.argument("seconds", metavar="DURATION", type=DurationType(above=True), default="1s")
@click.option(
    "--at",
    "speed",
    type=click.FloatRange(1, _SPEED_MAX),
    default=_STEP_SPEED,
    show_default=True,
    metavar="N",
    help="How many of the seconds pass in a real one.",
)
@output_option()
@kubeconfig_option
def step(
    *,
    seconds: float,
    speed: float,
    output: Form,
    kubeconfig: str,
    context: str,
) -> None:
    """Let DURATION pass (1s by default), wait for its end, and stop the time."""
    _ask({"step": seconds, "speed": speed}, output, kubeconfig, context)


@time.command(epilog=_SPEED_EPILOG)
@click.argument("speed", metavar="N", type=click.FloatRange(0, _SPEED_MAX))
@output_option()
@kubeconfig_option
def speed(*, speed: float, output: Form, kubeconfig: str, context: str) -> None:
    """Let N seconds pass in a real one from now on; 0 stops time."""
    _ask({"speed": speed}, output, kubeconfig, context)


def _ask(change: dict[str, float] | None, output: Form, kubeconfig: str, context: str) -> None:
    from moorage.cli.render import show
    from moorage.cli.session import run_session

    state = run_session(
        lambda session: _changed(session, change),
        kubeconfig=kubeconfig,
        context=context,
        writes=change is not None,
    )
    runs = f"{state['speed']:g} seconds a second" if state["speed"] else "stopped"
    show(output, state, text=f"{state['now']}  {runs}")


async def _changed(session: Session, change: dict[str, float] | None) -> dict[str, Any]:
    """Change the pace of time, wait until a step is done, and return the new pace."""
    from moorage.base import aio

    state = await _call(session, "GET" if change is None else "POST", change)
    while change is not None and "step" in change and state["speed"]:
        await aio.sleep(_LOOK_SECONDS)
        state = await _call(session, "GET", None)
    return state


async def _call(
    session: Session, method: Literal["GET", "POST"], change: dict[str, float] | None
) -> dict[str, Any]:
    import msgspec

    from moorage.base.errors import UsageError
    from moorage.client.status import error_from_answer
    from moorage.client.transport import Call

    body = None if change is None else msgspec.json.encode(change)
    answer = await session.transport.request(Call(method, TIME_PATH, body=body))
    if answer.status == 404:
        raise UsageError("this server is no sandbox of moorage: its time is its machine's")
    if answer.status != 200:
        raise error_from_answer(answer)
    found: dict[str, Any] = msgspec.json.decode(answer.body)
    return found
