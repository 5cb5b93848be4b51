"""``moorage group-controller``: keeps the status of groups and elastic quotas."""

from __future__ import annotations

import click

from moorage.cli.options import server_option, start_logging, verbose_option

_EPILOG = """
\b
Examples:
  moorage group-controller --kubeconfig ~/.kube/config
  helm install moorage deploy/chart --set groups.controller.enabled=true

\b
Needed rights: list and watch pods, podgroups and elasticquotas; patch the status of the last two;
create and patch Events. The chart gives them to a service account of its own.
"""


@click.command("group-controller", epilog=_EPILOG)
@server_option
@verbose_option
def group_controller(*, kubeconfig: str, context: str, verbose: int) -> None:
    """Keep the status of PodGroups and ElasticQuotas, until Ctrl-C or SIGTERM.

    The kinds are those of scheduler-plugins (scheduling.x-k8s.io), whose controller this replaces:
    the phase and the counts that `kubectl get podgroup` shows, and the used amounts of
    `kubectl get elasticquota`. No decision reads them. A sandbox has these controllers already.
    """
    from moorage.base.clock import SystemClock
    from moorage.base.process import Ending, run_loop, until_ended
    from moorage.base.rng import Streams
    from moorage.cli.session import wait_for_server
    from moorage.client.auth import without_user
    from moorage.client.http_transport import open_transport
    from moorage.client.kubeconfig import find_access
    from moorage.client.writes import Client
    from moorage.controllers.cluster import ClusterControllers
    from moorage.controllers.groups import GroupControllers

    start_logging(verbose)
    clock, streams = SystemClock(), Streams()
    access = find_access(kubeconfig, context=context, clock=clock)

    async def work() -> None:
        transport = open_transport(access, clock=clock, user_agent="moorage-group-controller")
        try:
            await wait_for_server(transport, streams, clock)
            client = Client(transport, rng=streams.stream("client"))
            server = without_user(access.server)
            click.echo(f"keeping the status of PodGroups and ElasticQuotas of {server}")
            parts = (GroupControllers,)
            await ClusterControllers(client, clock=clock, streams=streams, parts=parts).run()
        finally:
            await transport.close()

    async def main() -> None:
        ending = Ending()
        ending.listen()
        await until_ended(work(), ending, name="group controller")

    run_loop(main())
