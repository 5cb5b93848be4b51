"""Composes the scheduler: configuration, plugins, transport; used by ``run`` and ``up``."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import msgspec

from moorage.base.aio import TaskOwner, being_cancelled
from moorage.base.clock import Clock, SystemClock
from moorage.base.errors import ConfigError, UsageError
from moorage.base.ids import new_uid
from moorage.base.rng import Streams
from moorage.cli.checking import check_config
from moorage.cli.render import show_note, yaml_text
from moorage.cli.run.flags import values_in_force
from moorage.cli.run.overrides import with_flags
from moorage.cli.run.recording import Recording
from moorage.cli.run.reloading import Read, Reloading, WatchedFiles, watched_files
from moorage.cli.run.scheduler_options import NOBODY, SchedulerOptions, StartListeners
from moorage.cli.run.serving import Begun, Port, health_server, metric_pages, port_of
from moorage.cli.run.start_line import tell_start
from moorage.cli.session import wait_for_server
from moorage.client.auth import ServerAccess, is_server_url, without_user
from moorage.client.guard import WriteGuard
from moorage.client.http_transport import open_transport
from moorage.client.kubeconfig import find_access
from moorage.client.leaders.address import LeaderAddress, own_pod
from moorage.client.transport import CallListener, Transport
from moorage.config.load import load_config
from moorage.config.own import LoadedConfiguration, with_groups
from moorage.config.types import KubeSchedulerConfiguration
from moorage.config.written import documents
from moorage.framework.containment import Containment
from moorage.observe.calls import CallFacts
from moorage.plugins.from_outside import WithPlugins, with_plugins
from moorage.service.assembly import assemble
from moorage.service.intake.plugin_watch import PluginWatch
from moorage.service.process.health import HealthServer, Listening
from moorage.service.process.leader import Elector, elector_of
from moorage.service.process.loop_stalls import watch_loop
from moorage.service.process.loop_watch import LoopWatch
from moorage.service.process.metered import MeteredTransport
from moorage.service.process.metrics import exposition_of
from moorage.service.scheduler import Scheduler

Page: TypeAlias = Callable[[Callable[[str], None] | None], Coroutine[Any, Any, None]]
"""Serves the page until cancelled; reports its login link to a function, if there is one."""


async def schedule(
    options: SchedulerOptions, clock: Clock, listeners: StartListeners = NOBODY
) -> None:
    """Schedule the pods of a server until cancelled.

    Parameters
    ----------
    listeners
        The functions to call when pods are being scheduled, and with the addresses that are served.

    Raises
    ------
    UsageError
        The configuration, the kubeconfig or the server cannot be used.
    ApiError, TransportError
        The server cannot be reached or refuses our credentials.
    """
    # 1. Read the options. A mistake ends here, before anything is connected.
    files = watched_files(options.config, options.plugins)  # seen before they are read
    config, streams = configured(options), Streams(options.seed)
    recording = Recording(options, config.own.tracing, clock)
    port = port_of(options.flags, clock=clock, streams=streams, free_port=options.free_port)
    access = scheduler_access(options, config.scheduler, clock)
    watch = PluginWatch(config.own.plugin_budget_seconds, SystemClock())
    containment = Containment(watch, is_cancelled=being_cancelled)
    known = with_plugins(config, options.plugins, containment=containment)
    for note in known.notes:
        show_note(note)
    # 2. Open connections. Nothing is sent yet.
    host, server_url = socket.gethostname(), without_user(access.server)
    calls = CallFacts(urlsplit(server_url).netloc)
    lease_transport, elector = _lease_keeper(known, access, port, clock=clock, streams=streams)
    guard = None if elector is None else WriteGuard(elector.check_lease)
    transport = scheduler_transport(config.scheduler, access, clock, guard, listener=calls)
    try:
        # 3. Assemble the scheduler, once the server has answered and taken the credentials.
        await wait_for_server(transport, streams, clock)
        scheduler = assemble(
            known.config,
            known.registry,
            MeteredTransport(transport, calls, clock),
            clock=clock,
            streams=streams,
            host=host,
            elector=elector,
            recorder=recording.recorder,
            watches_group_objects=True,
        )
        # 4. Prepare what the port serves: metrics, health checks, questions.
        metrics = exposition_of(
            scheduler,
            calls=calls,
            access=port.facts,
            containment=containment,
            gates=config.gates,
            disabled=str(options.flags.get("disabled-metrics", "")).split(","),
        )
        pages, begun = metric_pages(scheduler, metrics), Begun(scheduler, config, options.plugins)
        server = health_server(port, begun, clock, pages, flags=_in_force(options, port.listening))
        # 5. Run it, with everything that goes on next to it.
        line = tell_start(
            scheduler, server_url, known, seed=streams.seed, records=recording.description
        )
        with watch, LoopWatch(SystemClock(), lambda: watch.label), recording.sent:
            where = server_url, transport
            page = partial(_show_page, options, begun, clock=clock, where=where, server=server)
            reloads = _reload_when_due(options, files, begun, containment)
            await _run_and_serve(
                scheduler, server, (line, recording.run(), reloads), page, listeners
            )
    finally:
        await transport.close()
        await lease_transport.close()


def _lease_keeper(
    known: WithPlugins, access: ServerAccess, port: Port, *, clock: Clock, streams: Streams
) -> tuple[Transport, Elector | None]:
    """Return what keeps the lease, with connections of its own; None without an election.

    Lease renewals must not wait behind a thousand bindings.
    """
    transport = open_transport(access, clock=clock, user_agent="moorage-scheduler/leader-election")
    # Not from the seed: replicas may have the same seed, but never the same name.
    identity = f"{socket.gethostname()}_{new_uid(Streams().stream('identity'))}"
    elector = elector_of(
        known.config.scheduler,
        transport,
        identity=identity,
        clock=clock,
        streams=streams,
        annotations=partial(_leader_annotations, identity, own_pod(), port),
    )
    return transport, elector


def _leader_annotations(identity: str, pod: str, port: Port) -> Mapping[str, str]:
    """Return the annotations by which commands find the leader; none outside of a pod."""
    if not (pod and port.listening.port):
        return {}
    end = b"-----END CERTIFICATE-----\n"
    # The first one is the scheduler's own. Others would let more servers pass for it.
    own = port.access.tls.certificate.partition(end)[0] + end
    return LeaderAddress(identity, pod, port.listening.port, own.decode()).annotations


async def _reload_when_due(
    options: SchedulerOptions, files: WatchedFiles, begun: Begun, containment: Containment
) -> None:
    """Reload the configuration and the plugins whenever that is due, until cancelled."""

    def read() -> Read:
        given = configured(options)
        found = with_plugins(given, options.plugins, containment=containment)
        return Read(given, found.config, found.registry)

    reloading = Reloading(begun.scheduler.parts.reload, read, files, begun.replace_config)
    reloading.listen()
    await reloading.run()


def _in_force(options: SchedulerOptions, listening: Listening) -> dict[str, str]:
    """Return every flag of kube-scheduler with its value."""
    return values_in_force(
        {
            "bind-address": listening.address,
            **options.flags,
            "config": options.config or "",
            "kubeconfig": options.kubeconfig,
            "v": options.verbosity,
        }
    )


async def _run_and_serve(
    scheduler: Scheduler,
    server: HealthServer | None,
    work_next_to_it: Sequence[Coroutine[Any, Any, None]],
    page: Page,
    listeners: StartListeners,
) -> None:
    """Run a scheduler with other work next to it, and serve its port and page meanwhile.

    A scheduler in a cluster serves its port before it starts: probes get answers during a long
    start. In a sandbox the parent listens for reports, and pods in good time matter more than
    probes. There the order is pods, port, page, and each is reported once it is there.
    """
    # kube-scheduler's own debugging signal: compare the cache with the API and log differences.
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, scheduler.compare)
    tasks = TaskOwner()
    for work in work_next_to_it:
        tasks.spawn(work, name="next to the scheduler")
    stalls = watch_loop(scheduler.parts.clock, scheduler.facts.loop_stalls.observe)
    tasks.spawn(stalls, name="stalls of the loop")
    serves_late = listeners.serving is not None
    if listeners.ready is None:
        tasks.spawn(page(None), name="page")
    else:
        late = server if serves_late else None
        tasks.spawn(_report_start(scheduler, late, page, listeners), name="report the start")
    if server is not None and not serves_late:
        await server.start()
    try:
        await scheduler.run()
    finally:
        await tasks.cancel_all()
        if server is not None:
            await server.close()


async def _report_start(
    scheduler: Scheduler, server: HealthServer | None, page: Page, listeners: StartListeners
) -> None:
    """Report that pods are scheduled; then serve and report the port, and then the page."""
    await scheduler.ready.wait()
    if listeners.ready is not None:
        listeners.ready()
    if server is not None and listeners.serving is not None:
        await server.start()
        listeners.serving(server.url)
    await page(listeners.page)


async def _show_page(
    options: SchedulerOptions,
    begun: Begun,
    on_page: Callable[[str], None] | None,
    *,
    clock: Clock,
    where: tuple[str, Transport],
    server: HealthServer | None,
) -> None:
    """Serve the page for as long as the scheduler runs; nothing happens without one."""
    if options.page:
        from moorage.cli.page.serving import show_page

        bodies = {} if server is None else server.bodies
        title, transport = where
        await show_page(
            options,
            begun.scheduler,
            clock,
            server=title,
            bodies=bodies,
            transport=transport,
            on_page=on_page,
        )


def configured(options: SchedulerOptions) -> LoadedConfiguration:
    """Return the configuration of a run: the file, or the defaults, and what flags change.

    Raises
    ------
    ConfigError
        The file or a flag has faults.
    """
    if options.config is None:
        defaults = with_flags(LoadedConfiguration(), options.flags, has_config=False)
        return with_groups(defaults) if options.groups else defaults
    try:
        config = load_config(options.config)
    except ConfigError:
        check_config(options.config, options.plugins)  # tells the faults of the plugins as well
        raise
    config = with_flags(config, options.flags, has_config=True)
    return with_groups(config) if options.groups else config


def write_config(options: SchedulerOptions, path: Path) -> None:
    """Write the configuration of a run, with its defaults spelled out.

    Raises
    ------
    UsageError
        The configuration has faults, or the file cannot be written.
    """
    text = "\n---\n".join(yaml_text(each) for each in documents(configured(options)))
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def scheduler_access(
    options: SchedulerOptions, config: KubeSchedulerConfiguration, clock: Clock
) -> ServerAccess:
    """Find the server: first by the flag, then by the configuration's file, then the usual places.

    Raises
    ------
    KubeconfigError
        No kubeconfig is found, or it cannot be used.
    UsageError
        ``--master`` is no URL.
    """
    kubeconfig = options.kubeconfig or config.client_connection.kubeconfig
    access = find_access(kubeconfig, context=options.context, clock=clock)
    master = str(options.flags.get("master", "")).rstrip("/")
    if master and not is_server_url(master):
        raise UsageError(f"--master {master}: must be a URL such as https://10.0.0.1:6443")
    return msgspec.structs.replace(access, server=master) if master else access


def scheduler_transport(
    config: KubeSchedulerConfiguration,
    access: ServerAccess,
    clock: Clock,
    guard: WriteGuard | None = None,
    *,
    listener: CallListener | None = None,
) -> Transport:
    """Return the transport to the server, with the rate limit of ``clientConnection``, if any."""
    limits = config.client_connection
    return open_transport(
        access,
        clock=clock,
        qps=limits.qps,
        burst=limits.burst,
        user_agent="moorage-scheduler",
        guard=guard,
        listener=listener,
    )
