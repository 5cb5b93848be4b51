"""``moorage reason``: prints what a code means, or all codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moorage.cli.options import output_option

if TYPE_CHECKING:
    from moorage.cli.render import Form

_EPILOG = """
\b
Examples:
  moorage reason                        all codes
  moorage reason InsufficientCPU        what it is, how to see it, how to fix it
  moorage reason -o json
"""


@click.command(epilog=_EPILOG)
@click.argument("code", required=False, default="")
@output_option("name")
def reason(*, code: str, output: Form) -> None:
    """Explain a code of why a pod waits, as `queue` and the page show it."""
    from moorage.cli.reason.text import code_of, list_text, plain, text_of
    from moorage.cli.render import show
    from moorage.explain.reasons.texts import TEXTS

    if code:
        known = code_of(code)
        show(output, plain(known), text=lambda: text_of(known), names=[f"reason/{known}"])
    else:
        names = [f"reason/{each}" for each in TEXTS]
        show(output, {"reasons": [plain(each) for each in TEXTS]}, text=list_text, names=names)
