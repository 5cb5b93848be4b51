"""``moorage migrate``: an admission policy that gives some of the new pods to moorage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moorage.cli.options import output_option

if TYPE_CHECKING:
    from moorage.cli.render import Form

_EPILOG = """
\b
Examples:
  moorage migrate -n team-a                     what would be applied: one namespace
  moorage migrate -n team-a | kubectl apply -f -
  moorage migrate --share 10 | kubectl apply -f -     the pods of every tenth ReplicaSet or Job
  moorage migrate | kubectl delete -f -         the way back; placed pods keep their nodes

\b
The API server needs MutatingAdmissionPolicy: stable since Kubernetes 1.36; 1.34 and 1.35 have it
as --api-version v1beta1 where its feature gate is on.
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--to",
    "scheduler",
    default="moorage",
    show_default=True,
    metavar="NAME",
    help="The schedulerName that pods get: that of a profile of moorage.",
)
@click.option(
    "--from",
    "before",
    default="default-scheduler",
    show_default=True,
    metavar="NAME",
    help="The schedulerName of the pods that change.",
)
@click.option(
    "-n",
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Pods of this namespace; may be repeated. Default: all namespaces but kube-system.",
)
@click.option(
    "--share",
    type=click.IntRange(1, 100),
    default=100,
    show_default=True,
    metavar="PERCENT",
    help="How many of the ReplicaSets, Jobs and other controllers of pods; drawn by their uid, so "
    "that all pods of one go the same way. Below 100, groups and pods without a controller stay.",
)
@click.option(
    "--policy",
    "name",
    default="moorage-migrate",
    show_default=True,
    metavar="NAME",
    help="The name of the policy and of its binding.",
)
@click.option(
    "--api-version",
    type=click.Choice(["v1", "v1beta1"]),
    default="v1",
    show_default=True,
    help="The version of admissionregistration.k8s.io.",
)
@output_option(text=False)
def migrate(
    *,
    scheduler: str,
    before: str,
    namespaces: tuple[str, ...],
    share: int,
    name: str,
    api_version: str,
    output: Form,
) -> None:
    """Print an admission policy that gives new pods to moorage.

    It is a MutatingAdmissionPolicy with its binding; nothing is applied. Start the second scheduler
    first, apply the policy then, and raise the share step by step. Pods that exist are not changed:
    a schedulerName is set for good when a pod is created.
    """
    from moorage.cli.migrate.policy import Migration, policy_objects
    from moorage.cli.render import show

    if scheduler == before:
        raise click.UsageError(f"--to and --from are both {scheduler}: nothing would change")
    migration = Migration(
        scheduler=scheduler,
        before=before,
        namespaces=namespaces,
        share=share,
        name=name,
        api_version=api_version,
    )
    show(output, {"apiVersion": "v1", "kind": "List", "items": policy_objects(migration)}, text="")
