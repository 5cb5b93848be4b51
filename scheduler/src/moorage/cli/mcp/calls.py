"""Runs the command of a call in a process of its own, with bounds on time and on the answer.

A process of its own: the answer is the command's, a question that takes all memory or never ends
takes nothing from the server, and a call that is cancelled ends at once.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from typing import Final

import msgspec

from moorage.base.errors import MoorageError
from moorage.cli.mcp.tools import Invocation

_SECONDS_MAX: Final = 120.0
_BYTES_MAX: Final = 48_000
"""About 12,000 tokens; a guess of what an agent still reads."""
_READ_BYTES_MAX: Final = 32_000_000
_COLUMNS: Final = "120"


class CallAnswer(msgspec.Struct, frozen=True):
    """The answer of a call.

    Parameters
    ----------
    text
        The answer, JSON or text.
    notes
        What the command says about its answer, "" for nothing.
    failed
        Whether there is no answer; the notes then say why.
    """

    text: str
    notes: str = ""
    failed: bool = False


async def run(invocation: Invocation, *, seconds: float = _SECONDS_MAX) -> CallAnswer:
    """Run the command of a call.

    Parameters
    ----------
    seconds
        After this time the process is ended.

    Raises
    ------
    MoorageError
        The command takes too long, or its answer is too large to be cut.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "moorage", *invocation.arguments),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env={**os.environ, "COLUMNS": _COLUMNS, "NO_COLOR": "1"},
    )
    try:
        async with asyncio.timeout(seconds):
            output, notes, _ = await asyncio.gather(
                _read(process.stdout), _read(process.stderr), _write(process.stdin, invocation)
            )
            code = await process.wait()
    except TimeoutError:
        raise MoorageError(f"there is no answer after {seconds:g} s: ask for less") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    # An answer that something gets worse ends with 1 as well.
    failed = code != 0 and not output.strip()
    return CallAnswer(_bounded(output, json=invocation.json), _cut(notes), failed)


async def _read(stream: asyncio.StreamReader | None) -> str:
    assert stream is not None, "a pipe"
    text = bytearray()
    while part := await stream.read(1 << 16):
        text += part
        if len(text) > _READ_BYTES_MAX:
            raise MoorageError(f"the answer has more than {_READ_BYTES_MAX} bytes: ask for less")
    return text.decode("utf-8", "replace").rstrip("\n")


async def _write(stream: asyncio.StreamWriter | None, invocation: Invocation) -> None:
    assert stream is not None, "a pipe"
    try:
        stream.write(invocation.stdin)
        await stream.drain()
    except ConnectionError:
        pass  # it ended without reading all, and says why
    stream.close()


def _bounded(text: str, *, json: bool) -> str:
    """Return an answer within the bound: cut text, but refuse JSON, which is useless when cut."""
    size = len(text.encode())
    if json and size > _BYTES_MAX:
        raise MoorageError(
            f"the answer in JSON has {size} bytes, and {_BYTES_MAX} are the most: ask without "
            "json, or for one namespace, or with a smaller limit"
        )
    return _cut(text)


def _cut(text: str) -> str:
    """Return the first lines of a text, with the number of those that are left out."""
    if len(text.encode()) <= _BYTES_MAX:
        return text
    lines = text.split("\n")
    size, shown = 0, 0
    for line in lines:
        size += len(line.encode()) + 1
        if size > _BYTES_MAX:
            break
        shown += 1
    left = len(lines) - shown
    return "\n".join([*lines[:shown], f"... {left} more lines are left out: ask for less"])
