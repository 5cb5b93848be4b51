"""The options that say which running scheduler a command asks; `moorage.cli.ask` asks it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

F = TypeVar("F", bound=Callable[..., Any])


class QuestionTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The scheduler that is asked, and the way to it: `scheduler_options`, `kubeconfig_option`.

    Parameters
    ----------
    scheduler
        Its address, or ``NAMESPACE/POD[:PORT]``; empty for the scheduler of a sandbox, and for the
        leader of a cluster.
    lease
        ``NAMESPACE/NAME`` of the Lease whose holder is asked; empty for those of `find_leader`.
    token, certificate_authority, insecure
        For an address: a bearer token, the PEM file of certificates to trust, and whether any
        certificate is trusted.
    kubeconfig, context
        The API server, for a pod; the sandbox, if nothing is named.
    """

    scheduler: str = ""
    lease: str = ""
    token: str = ""
    certificate_authority: Path | None = None
    insecure: bool = False
    kubeconfig: str = ""
    context: str = ""

    @property
    def is_named(self) -> bool:
        """Whether a certain scheduler is to be asked, and no answer may come from elsewhere."""
        return bool(self.scheduler or self.lease)


def scheduler_options(function: F) -> F:
    """Add ``--scheduler`` and the options that belong to it."""
    options = (
        click.option(
            "--scheduler",
            default="",
            metavar="URL|NAMESPACE/POD",
            help="The scheduler to ask: its address, or its pod, which the API server's proxy "
            "reaches. Default: the scheduler of the sandbox, or the leader of the cluster.",
        ),
        click.option(
            "--lease",
            default="",
            metavar="NAMESPACE/NAME",
            help="The Lease whose holder is asked, with the kubeconfig's credentials. Default: "
            "kube-system/kube-scheduler, then moorage/moorage.",
        ),
        click.option("--token", default="", metavar="TOKEN", help="Bearer token for --scheduler."),
        click.option(
            "--certificate-authority",
            type=click.Path(path_type=Path),
            default=None,
            metavar="FILE",
            help="PEM file of the certificates to trust for --scheduler.",
        ),
        click.option(
            "--insecure-skip-tls-verify",
            "insecure",
            is_flag=True,
            help="Trust any certificate of --scheduler: without a file it makes one itself.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function
