"""The entry point: the group of all commands, and how failures become exit codes."""

from __future__ import annotations

import sys
from http import HTTPStatus
from typing import Any

import click

from moorage.base.errors import ApiError, MoorageError, RefusedError, UsageError
from moorage.cli.apply import apply
from moorage.cli.bench import bench
from moorage.cli.bench_api import bench_api, bench_api_client
from moorage.cli.bench_extender import bench_extender
from moorage.cli.bench_gang_arrivals import bench_gang_arrivals
from moorage.cli.completion import completion
from moorage.cli.config import config
from moorage.cli.conformance import conformance
from moorage.cli.delete import delete
from moorage.cli.describe import describe
from moorage.cli.example_extender import example_extender
from moorage.cli.get import get
from moorage.cli.nodes import nodes
from moorage.cli.plot import plot
from moorage.cli.run import run
from moorage.cli.snapshot import snapshot
from moorage.cli.soak import soak
from moorage.cli.up import up
from moorage.cli.version import version

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130

_EPILOG = """
\b
First steps:
  moorage up                         a cluster on this machine, with 30 pods
  export KUBECONFIG=.moorage/kubeconfig
  moorage get pods -o wide           what runs where (kubectl works as well)
  moorage describe pod giant         why a pod waits

\b
Exit codes:
  0    done; for up, run and nodes also: ended by Ctrl-C or SIGTERM
  1    it failed: the server refused, a part broke, decisions differ
  2    bad input: a flag, a file, a kubeconfig, a port that is taken
  130  interrupted before it was done, or ended by a second signal
"""


class Commands(click.Group):
    """A group that tells failures in one line and ends with the documented exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; operating failures become a message and an exit code."""
        try:
            return super().invoke(ctx)
        except MoorageError as error:
            click.echo(f"moorage: {error}{_advice(error)}", err=True)
            ctx.exit(EXIT_BAD_INPUT if isinstance(error, UsageError) else EXIT_FAILED)
        except KeyboardInterrupt:
            click.echo("moorage: interrupted", err=True)
            ctx.exit(EXIT_INTERRUPTED)


def _advice(error: MoorageError) -> str:
    """Return what to do about failures whose own text comes from a server or from TLS."""
    if isinstance(error, ApiError) and error.code == HTTPStatus.UNAUTHORIZED:
        return ": the server knows no such user; check the user's credentials in the kubeconfig"
    if isinstance(error, RefusedError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "; check certificate-authority of the cluster in the kubeconfig"
    if isinstance(error, RefusedError):
        return "; is the server running, and is its address in the kubeconfig right?"
    return ""


@click.group(cls=Commands, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Schedule Kubernetes pods, and run a small cluster to try it in.

    `moorage up` starts a whole cluster on this machine. `moorage run` schedules the pods of any
    API server. The other commands look at a cluster and change it, much as kubectl does.
    """


for _benchmark in (soak, bench_api, bench_api_client, bench_extender, bench_gang_arrivals):
    bench.add_command(_benchmark)
for _command in (
    up,
    run,
    nodes,
    apply,
    get,
    describe,
    delete,
    conformance,
    bench,
    config,
    plot,
    snapshot,
    example_extender,
    version,
    completion,
):
    main.add_command(_command)


if __name__ == "__main__":
    sys.exit(main())
