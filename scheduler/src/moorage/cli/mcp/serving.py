"""Serves the tools by the protocol's own SDK: the only module that imports it (extra ``mcp``)."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import click

from moorage import __version__
from moorage.base.errors import MoorageError, UsageError
from moorage.base.process import Ending, run_loop, until_ended
from moorage.cli.mcp.calls import CallAnswer, run
from moorage.cli.mcp.tools import TOOLS, input_schema, invocation

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

_CALLS_MAX: Final = 2
"""Calls that run at a time; the others wait."""
_LINE_BYTES_MAX: Final = 8_000_000
_INSTRUCTIONS: Final = (
    "Answers about pods of a Kubernetes cluster that wait for a node, from its scheduler. "
    "Nothing is ever written. Begin with queue; explain_object and explain_pod say why and what "
    "would help; what_if tries a change before anybody makes it. A suggestion names the kubectl "
    "command: leave it to a person to run it."
)


def serve(root: click.Command, target: Sequence[str]) -> None:
    """Answer on standard input and output until the input ends.

    Parameters
    ----------
    root
        The program's group of commands.
    target
        Options that say who is asked.

    Raises
    ------
    UsageError
        The extra is not installed, or standard input is no pipe.
    """
    try:
        from mcp.server.stdio import stdio_server
    except ImportError as error:
        raise UsageError(
            "the Model Context Protocol needs its SDK: pip install 'moorage[mcp]'"
        ) from error
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        raise UsageError(
            "an agent starts this command and speaks to it through pipes: moorage mcp --help shows "
            "its configuration"
        )

    async def answer() -> None:
        server = server_over(root, target)
        lines = cast("Any", _Lines())  # it is iterated over, nothing else
        async with stdio_server(stdin=lines) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    async def main() -> None:
        ending = Ending()
        ending.listen()
        await until_ended(answer(), ending, name="answer agents")

    run_loop(main())


class _Lines:
    """The lines of standard input, which are read on the loop.

    The SDK reads them in a thread, which no signal ends.
    """

    async def __aiter__(self) -> AsyncIterator[str]:
        reader = asyncio.StreamReader(limit=_LINE_BYTES_MAX)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while True:
            try:
                line = await reader.readline()
            except ValueError:  # longer than the limit: the SDK answers that it is no message
                line = b"{\n"
            if not line:
                return
            yield line.decode("utf-8", "replace")


def server_over(root: click.Command, target: Sequence[str]) -> Server[Any]:
    """Return a server of all tools, which is not connected yet.

    Parameters
    ----------
    root, target
        As of `serve`.
    """
    import mcp_types as types
    from mcp.server.lowlevel import Server

    turns = asyncio.Semaphore(_CALLS_MAX)
    hints = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True)
    tools = [
        types.Tool(
            name=tool.name,
            description=tool.description,
            input_schema=input_schema(tool, root),
            annotations=hints,
        )
        for tool in TOOLS
    ]
    by_name = {tool.name: tool for tool in TOOLS}

    async def list_tools(_context: Any, _parameters: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        _context: Any, parameters: types.CallToolRequestParams
    ) -> types.CallToolResult:
        try:
            tool = by_name.get(parameters.name)
            if tool is None:
                raise UsageError(f"there is no tool {parameters.name}; known: {', '.join(by_name)}")
            command = invocation(tool, parameters.arguments or {}, root, target)
            async with turns:
                answer = await run(command)
        except MoorageError as error:
            answer = CallAnswer("", str(error), failed=True)
        texts = [each for each in (answer.text, answer.notes) if each]
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=each) for each in texts],
            is_error=answer.failed,
        )

    return Server(
        "moorage",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
