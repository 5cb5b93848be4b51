"""``moorage dashboard``: the page of any cluster, with read access only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from moorage.cli.options import config_option, kubeconfig_option, log_from, plugin_option
from moorage.cli.question_target import QuestionTarget, scheduler_options
from moorage.cli.run.scheduler_options import PAGE

_EPILOG = """
\b
Examples:
  moorage dashboard --kubeconfig prod.kubeconfig     the page of a cluster, on this machine
  moorage dashboard --address 127.0.0.1:0            on any free port
  moorage dashboard --scheduler kube-system/moorage-0
                                                     what this scheduler answers
  moorage dashboard --login token --address 0.0.0.0:8443 --tls-cert-file tls.crt \\
      --tls-private-key-file tls.key                 viewers log in with tokens of their own

\b
A scheduler of moorage answers where there is one: the one that --scheduler names, the
sandbox's, or the holder of the lease that the configuration names. Otherwise the cluster is
watched, and explanations are computed by the configuration: only lists and watches are sent.
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--address",
    default=PAGE,
    show_default=True,
    metavar="ADDRESS:PORT",
    help="Where to serve the page; port 0 takes any free one. Elsewhere than on loopback with TLS.",
)
@click.option(
    "--login",
    type=click.Choice(["link", "token"]),
    default="link",
    show_default=True,
    help="link: a link that works once, and everybody sees what the kubeconfig's user may see. "
    "token: each viewer gives a token of the cluster, and sees what it may see.",
)
@click.option(
    "--tls-cert-file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE",
    help="Certificate of the page, PEM. Default: elsewhere than on loopback, one of its own.",
)
@click.option(
    "--tls-private-key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE",
    help="Key of --tls-cert-file, PEM.",
)
@config_option("Configuration of the scheduler, for explanations. Default: the default profile.")
@plugin_option
@scheduler_options
@kubeconfig_option
def dashboard(
    *,
    address: str,
    login: str,
    tls_cert_file: Path | None,
    tls_private_key_file: Path | None,
    config: Path | None,
    plugins: tuple[str, ...],
    **target: Any,
) -> None:
    """Serve the page of any cluster, until Ctrl-C; nothing is written.

    The login link is printed; it works once, and then the next one is printed. The page shows what
    the user of the kubeconfig may see, to whoever opened a link. With --login token, each viewer
    logs in with a token of the cluster, and sees what its user may see.
    """
    import logging

    from moorage.base.errors import UsageError
    from moorage.cli.page.any_cluster import Wanted, show_cluster

    log_from(logging.WARNING)
    if (tls_cert_file is None) != (tls_private_key_file is None):
        raise UsageError("--tls-cert-file and --tls-private-key-file are given both or not at all")
    show_cluster(
        Wanted(
            address=address,
            config=config,
            plugins=plugins,
            to=QuestionTarget(**target),
            by_token=login == "token",
            certificate=tls_cert_file,
            key=tls_private_key_file,
        )
    )
