"""``moorage mcp``: answers agents by the Model Context Protocol, on standard input and output."""

from __future__ import annotations

from typing import Any

import click

from moorage.cli.options import kubeconfig_option
from moorage.cli.question_target import scheduler_options

_EPILOG = """
\b
Examples:
  moorage mcp --context prod                    what an agent starts; see below
  moorage mcp --scheduler kube-system/moorage-0

\b
An agent's configuration names the command:
  {"mcpServers": {"moorage": {"command": "moorage", "args": ["mcp", "--context", "prod"]}}}

\b
Tools: queue, explain_pod, explain_object, what_if, capacity, reason. Each runs the
command of that name with the rights of the kubeconfig's user, and writes nothing. An
answer has at most 48,000 bytes, and a call takes at most 120 s; two run at a time.
The command ends with its input. It needs the extra mcp: pip install 'moorage[mcp]'.
"""


@click.command(epilog=_EPILOG)
@scheduler_options
@kubeconfig_option
@click.pass_context
def mcp(ctx: click.Context, /, **_target: Any) -> None:
    """Answer agents by the Model Context Protocol: queue, explain, what-if, capacity."""
    from moorage.cli.mcp.serving import serve
    from moorage.cli.mcp.tools import target_words

    serve(ctx.find_root().command, target_words(ctx))
