"""``moorage events``: what happened, the newest last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from moorage.cli.options import kubeconfig_option, namespace_option, output_option

if TYPE_CHECKING:
    from moorage.cli.render import Form
    from moorage.cli.session import Session

_EPILOG = """
\b
Examples:
  moorage events                       of the context's namespace
  moorage events -A                    of every namespace
  moorage events --for pod/giant       about one object
"""


@click.command(epilog=_EPILOG)
@click.option("-A", "--all-namespaces", is_flag=True, help="Of every namespace.")
@click.option("--for", "about", default="", metavar="KIND/NAME", help="Only about this object.")
@output_option()
@namespace_option
@kubeconfig_option
def events(
    *,
    all_namespaces: bool,
    about: str,
    output: Form,
    namespace: str,
    kubeconfig: str,
    context: str,
) -> None:
    """List Events, the newest last."""
    from moorage.base.errors import UsageError
    from moorage.cli.render import show
    from moorage.cli.session import run_session

    if about and not all(about.partition("/")):
        raise UsageError(f"--for {about}: write KIND/NAME, such as pod/giant")

    async def work(session: Session) -> None:
        items = await _events(session, about, everywhere=all_namespaces)
        text = "\n".join(_table(items, session, everywhere=all_namespaces))
        report = {"apiVersion": "v1", "kind": "List", "items": items}
        show(output, report, text=text if items else "")
        if not items:
            click.echo("No resources items.", err=True)

    run_session(work, kubeconfig=kubeconfig, context=context, namespace=namespace)


async def _events(session: Session, about: str, *, everywhere: bool) -> list[Any]:
    from moorage.api.resources import CORE_EVENTS
    from moorage.cli.kinds import named_kind
    from moorage.cli.reported_events import events_about, last_time
    from moorage.client.requests import Selection

    namespace = "" if everywhere else session.namespace
    if about:
        word, _, name = about.partition("/")
        kind = await named_kind(session.client, word)
        own = namespace if kind.namespaced else ""
        return await events_about(session.client, kind.kind, name, namespace=own)
    listed: Any = await session.client.list(CORE_EVENTS, Selection(namespace))
    return sorted(listed["items"], key=last_time)


def _table(items: list[Any], session: Session, *, everywhere: bool) -> list[str]:
    from moorage.cli.render import Columns
    from moorage.cli.reported_events import reported_event
    from moorage_sandbox.cli.describe.text import last_seen

    rows = []
    for event in items:
        short, of = reported_event(event), event["involvedObject"]
        seen = last_seen(short, session.clock)
        row = [seen, short.type, short.reason, f"{of['kind'].lower()}/{of['name']}", short.message]
        rows.append([event["metadata"]["namespace"], *row] if everywhere else row)
    headings = ["Last Seen", "Type", "Reason", "Object", "Message"]
    return Columns(["Namespace", *headings] if everywhere else headings).lines(rows)
