"""``moorage config``: look at configuration files without starting anything."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moorage.cli.command_group import CommandGroup
from moorage.cli.options import emulation_options, gates_option, output_option, plugin_option

if TYPE_CHECKING:
    from moorage.cli.render import Form
    from moorage.config.own import LoadedConfiguration

_EPILOG = """
\b
Examples:
  moorage config check scheduler.yaml           every fault at once
  moorage config check scheduler.yaml -o json   for programs
  moorage config defaults > scheduler.yaml      a file to begin with
  moorage config convert old.yaml > new.yaml    a file of an earlier Kubernetes, rewritten

\b
A file holds one or two documents: Kubernetes' KubeSchedulerConfiguration, as kube-scheduler reads
it, and moorage's own MoorageConfiguration.
"""


_CHECK_EPILOG = """
\b
Examples:
  moorage config check scheduler.yaml
  moorage config check scheduler.yaml --plugin mine.py:prefer_green -o json
  moorage config check scheduler.yaml --emulated-version 1.37    what 1.37 reads otherwise
"""
_DEFAULTS_EPILOG = """
\b
Examples:
  moorage config defaults > scheduler.yaml
  moorage config defaults -o json
"""


@click.group(cls=CommandGroup, epilog=_EPILOG)
def config() -> None:
    """Check scheduler configurations, renew old ones, and show the defaults."""


@config.command(epilog=_CHECK_EPILOG)
@click.argument("file", type=click.Path(path_type=Path))
@plugin_option
@gates_option
@emulation_options
@output_option()
@click.pass_context
def check(
    ctx: click.Context,
    /,
    file: Path,
    *,
    plugins: tuple[str, ...],
    version: str,
    oldest: str,
    gates: str,
    output: Form,
) -> None:
    """Read FILE as `moorage run --config FILE` would, and tell every fault.

    With --emulated-version, also list the gates, fields and plugins that mean something else than
    under the version that FILE names, or 1.36.

    Exit code 0: it can be used. 2: it cannot; in JSON, valid is false and faults lists why.
    """
    from moorage.base.errors import ConfigError, UsageError
    from moorage.cli.checking import check_config
    from moorage.cli.render import show
    from moorage.config.own import emulating

    change = partial(emulating, version=version, oldest=oldest, gates=gates)
    report: dict[str, Any] = {"file": str(file), "valid": True, "faults": [], "profiles": []}
    try:
        loaded = check_config(file, plugins, change)
    except UsageError as error:
        if output == "text":
            raise
        faults = error.faults if isinstance(error, ConfigError) else (str(error),)
        show(output, {**report, "valid": False, "faults": list(faults)}, text="")
        ctx.exit(2)
    names = [profile.scheduler_name for profile in loaded.scheduler.profiles]
    lines = [f"{file} can be used; it serves {', '.join(names)}"]
    if version:
        compared = _compared(file, loaded, gates)
        lines += _difference_lines(compared)
        report |= compared
    show(output, {**report, "profiles": names}, text="\n".join(lines))


def _compared(file: Path, now: LoadedConfiguration, gates: str) -> dict[str, Any]:
    """Return what the file means otherwise than under its own version."""
    from msgspec import to_builtins

    from moorage.base.errors import ConfigError
    from moorage.config.differences import differences
    from moorage.config.load import load_config
    from moorage.config.own import emulating
    from moorage.plugins.in_tree import in_tree_registry

    before = load_config(file)
    with suppress(ConfigError):  # gates that are written for the other version
        before = emulating(before, gates=gates)
    return {
        "ownVersion": before.gates.version,
        "emulatedVersion": now.gates.version,
        "differences": to_builtins(differences(before, now, in_tree_registry())),
    }


def _difference_lines(compared: dict[str, Any]) -> list[str]:
    before, now = compared["ownVersion"], compared["emulatedVersion"]
    if not compared["differences"]:
        return [f"It means the same under {before} and {now}"]
    lines = [f"Under {now} it differs from {before}:"]
    for each in compared["differences"]:
        effect = f" ({each['effect']})" if each["effect"] else ""
        lines.append(f"  {each['kind']} {each['name']}: {each['before']} -> {each['now']}{effect}")
    return lines


@config.command(epilog=_DEFAULTS_EPILOG)
@emulation_options
@output_option(text=False)
def defaults(version: str, oldest: str, output: Form) -> None:
    """Print the configuration that no file means, with everything spelled out.

    Left out are percentageOfNodesToScore and clientConnection.qps and burst: unset they mean every
    node and no limit, which no value says.
    """
    from moorage.cli.render import json_text, yaml_text
    from moorage.config.own import LoadedConfiguration, emulating
    from moorage.config.written import documents

    found = documents(emulating(LoadedConfiguration(), version=version, oldest=oldest))
    if output == "json":
        click.echo(json_text(found))
    else:
        click.echo("\n---\n".join(yaml_text(each) for each in found))


_CONVERT_EPILOG = """
\b
Examples:
  moorage config convert scheduler-v1beta2.yaml > scheduler.yaml
  moorage config convert --policy-config-file policy.cfg --scheduler-name batch
  moorage config convert --algorithm-provider ClusterAutoscalerProvider

\b
The flags are those of kube-scheduler up to 1.22. The comments at the top of the output list
everything that was dropped or changed. The output is checked as `moorage config check` does.
"""


@config.command(epilog=_CONVERT_EPILOG)
@click.argument("old", required=False, type=click.Path(path_type=Path))
@click.option("--policy-config-file", "policy", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--algorithm-provider", "provider", metavar="NAME")
@click.option("--scheduler-name", metavar="NAME")
@click.option("--hard-pod-affinity-symmetric-weight", "weight", type=int, metavar="0-100")
@click.option("--lock-object-name", "lock_name", metavar="NAME")
@click.option("--lock-object-namespace", "lock_namespace", metavar="NAME")
@output_option(text=False)
@click.pass_context
def convert(ctx: click.Context, /, old: Path | None, output: Form, **flags: Any) -> None:
    """Write an OLD configuration anew as kubescheduler.config.k8s.io/v1.

    OLD is a KubeSchedulerConfiguration of v1alpha1 to v1beta3, or a Policy file. Without OLD, the
    flags of the time are converted.

    Exit code 0: the output can be used. 2: OLD cannot be read, or the output still has faults of
    OLD's own; they are listed on standard error.
    """
    from msgspec import to_builtins

    from moorage.cli.converting import as_text, converted, remaining_faults
    from moorage.cli.render import json_text, show_error

    conversion = converted(old, flags)
    if output == "json":
        click.echo(
            json_text(
                {"documents": conversion.documents, "remarks": to_builtins(conversion.remarks)}
            )
        )
    else:
        click.echo(as_text(conversion, old or flags["policy"]))
    faults = remaining_faults(conversion)
    for fault in faults:
        show_error(f"the output still has a fault: {fault}")
    if faults:
        ctx.exit(2)
