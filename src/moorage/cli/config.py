"""``moorage config``: look at configuration files without starting anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from moorage.cli.options import plugin_option

_EPILOG = """
\b
Examples:
  moorage config check scheduler.yaml           every fault at once
  moorage config check scheduler.yaml -o json   for programs
  moorage config defaults > scheduler.yaml      a file to begin with

\b
A file holds one or two documents: Kubernetes' KubeSchedulerConfiguration, as kube-scheduler reads
it, and moorage's own MoorageConfiguration.
"""


@click.group(epilog=_EPILOG)
def config() -> None:
    """Check scheduler configurations, and show the defaults."""


@config.command()
@click.argument("file", type=click.Path(path_type=Path))
@plugin_option
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.pass_context
def check(ctx: click.Context, file: Path, *, plugins: tuple[str, ...], output: str) -> None:
    """Read FILE as `moorage run --config FILE` would, and tell every fault.

    Exit code 0: it can be used. 2: it cannot; in JSON, valid is false and faults lists why.
    """
    from moorage.base.errors import ConfigError, UsageError
    from moorage.cli.render import json_text
    from moorage.cli.run.scheduling import check_config

    found: dict[str, Any] = {"file": str(file), "valid": True, "faults": [], "profiles": []}
    try:
        loaded = check_config(file, plugins)
    except UsageError as error:
        if output == "text":
            raise
        faults = error.faults if isinstance(error, ConfigError) else (str(error),)
        click.echo(json_text({**found, "valid": False, "faults": list(faults)}))
        ctx.exit(2)
    names = [profile.scheduler_name for profile in loaded.scheduler.profiles]
    if output == "json":
        click.echo(json_text({**found, "profiles": names}))
    else:
        click.echo(f"{file} can be used; it serves {', '.join(names)}")


@config.command()
@click.option(
    "-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True
)
def defaults(output: str) -> None:
    """Print the configuration that no file means, with everything spelled out.

    Left out are percentageOfNodesToScore and clientConnection.qps and burst: unset they mean every
    node and no limit, which no value says.
    """
    from moorage.cli.render import json_text, yaml_text
    from moorage.config.own import LoadedConfiguration
    from moorage.config.written import documents

    found = documents(LoadedConfiguration())
    if output == "json":
        click.echo(json_text(found))
    else:
        click.echo("\n---\n".join(yaml_text(each) for each in found))
