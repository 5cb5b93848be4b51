"""``moorage get``: list or show objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moorage.cli.completing import complete_objects
from moorage.cli.options import kubeconfig_option, namespace_option, output_option

if TYPE_CHECKING:
    from moorage.cli.render import Form

_EPILOG = """
\b
Examples:
  moorage get pods                         in the context's namespace
  moorage get pods -A -o wide              everywhere, with nodes
  moorage get pods -w                      and go on showing changes
  moorage get pods,nodes                   several kinds
  moorage get all                          every kind of workload, with its pods and services
  moorage get pod giant -o yaml            one object, whole
  moorage get pods -l app=web --field-selector status.phase=Running
  moorage get pods -o json | jq ...        for programs
"""


@click.command(epilog=_EPILOG)
@click.argument("kinds", metavar="KIND[,KIND]|KIND/NAME", shell_complete=complete_objects)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_objects)
@click.option("-A", "--all-namespaces", is_flag=True, help="Look in every namespace.")
@click.option("-l", "--selector", default="", metavar="LABELS", help="Only objects labelled so.")
@click.option("--field-selector", default="", metavar="FIELDS", help="Only with these fields.")
@output_option("wide", "name")
@click.option("-w", "--watch", is_flag=True, help="Go on and show changes as they come.")
@namespace_option
@kubeconfig_option
def get(  # noqa: PLR0913 - one parameter an option
    *,
    kinds: str,
    names: tuple[str, ...],
    all_namespaces: bool,
    selector: str,
    field_selector: str,
    output: Form,
    watch: bool,
    namespace: str,
    kubeconfig: str,
    context: str,
) -> None:
    """List objects, or show named ones."""
    from moorage.cli.session import run_session
    from moorage_sandbox.cli.get.getter import GetQuery, Getter

    query = GetQuery(
        words=(kinds, *names),
        all_namespaces=all_namespaces,
        selector=selector,
        field_selector=field_selector,
        output=output,
        watch=watch,
    )
    query.check_options()
    try:
        run_session(
            lambda session: Getter(session, query).run(),
            kubeconfig=kubeconfig,
            context=context,
            namespace=namespace,
        )
    except KeyboardInterrupt:
        if not watch:
            raise
