"""``moorage up``: a whole cluster on this machine."""

from __future__ import annotations

import copy
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from moorage.cli.options import (
    config_option,
    emulation_options,
    groups_option,
    plugin_option,
    seed_option,
)
from moorage_sandbox.cli.up.configuration import DEFAULT_NAMES, checked
from moorage_sandbox.cli.up.life import live_through
from moorage_sandbox.cli.up.life_options import LifeOptions, kubeconfig_path, life_options
from moorage_sandbox.cli.up.node_options import (
    NodeOptions,
    are_default,
    node_options,
    templates_of,
)
from moorage_sandbox.cli.up.server_options import ServerOptions, server_options, server_settings
from moorage_sandbox.cli.up.view import Output, view_of

if TYPE_CHECKING:
    from moorage.base.process import Pace
    from moorage.cli.run.scheduler_options import SchedulerOptions
    from moorage_sandbox.sandbox.detaching import Detached
    from moorage_sandbox.sandbox.lines import View
    from moorage_sandbox.sandbox.processes.parts import Parts
    from moorage_sandbox.sandbox.settings import AutoscalerSettings, ServerSettings

_PAGE = "127.0.0.1:0"
_LABEL = "sample"
_FITS_NOWHERE = "giant"
_TRACKING = "batch.kubernetes.io/job-tracking"

_EPILOG = """
\b
Examples:
  moorage up                           20 nodes, a scheduler, 30 pods, until Ctrl-C
  moorage up --nodes 500 --empty       nothing to do yet for the scheduler
  moorage up --nodes-from nodes.yaml   nodes as written, or as `kubectl get nodes -o json` prints
  moorage up --nodes 9 --shape p4d.24xlarge,count=1 --shape m5.4xlarge
                                       eight nodes of a known size, and one with eight GPUs;
                                       `moorage nodes shapes` lists the sizes
  moorage up --autoscale 3:50          between 3 and 50 nodes, as many as pending pods need
  moorage up --config scheduler.yaml   with a KubeSchedulerConfiguration
  moorage up --plugin mine.py:prefer   with a plugin of yours
  moorage up --groups                  pods of a group start together, or none of them
  moorage up --exit-when-settled       for scripts: 0 when every pod is bound or explained
  moorage up --no-scheduler            to run another scheduler against it
  moorage up --speed 60                a minute passes in a second
  moorage up --speed 0                 time stands still, and is stepped by `moorage time step`
  moorage up --rbac                    users may do what roles grant them
  moorage up --no-controllers          kube-controller-manager takes their place
  moorage up --listen 192.168.1.5      for clients on other machines, too
  moorage up --data DIR                kept on disk: the next `up --data DIR` goes on from there
  moorage up -d                        in the background, until `moorage down`
  moorage up -d --name blue            another one next to it

\b
In another terminal:
  export KUBECONFIG=.moorage/kubeconfig
  kubectl get pods -o wide             or: moorage get pods -o wide

Ctrl-C ends everything within two seconds. Without --data nothing remains: the cluster is in
memory.
"""


@click.command(epilog=_EPILOG)
@node_options
@config_option("The scheduler's KubeSchedulerConfiguration.")
@groups_option
@click.option("--no-scheduler", is_flag=True, help="Start server and nodes only.")
@click.option("--no-dashboard", is_flag=True, help="Serve no page for people.")
@click.option("--empty", is_flag=True, help="Do not create the first thirty pods.")
@click.option(
    "--exit-when-settled",
    is_flag=True,
    help="End with 0 as soon as every pod is bound or its condition says why not.",
)
@click.option(
    "--single-process", is_flag=True, help="Run all parts in this process, for debugging."
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["auto", "lines", "json", "quiet"]),
    default="auto",
    show_default=True,
    help="auto: a live view on a terminal, lines elsewhere. json: one object a line. "
    "quiet: the lines to copy, nothing else.",
)
@click.option(
    "--feature-gates",
    "gates",
    default="",
    metavar="GATES",
    help="Of the scheduler, e.g. GenericWorkload=true,GangScheduling=true for pod groups.",
)
@emulation_options
@life_options
@server_options
@plugin_option
@seed_option
def up(  # noqa: PLR0913 - one parameter an option
    *,
    config: Path | None,
    no_scheduler: bool,
    no_dashboard: bool,
    empty: bool,
    exit_when_settled: bool,
    single_process: bool,
    output: Output,
    plugins: tuple[str, ...],
    seed: int | None,
    **others: Any,
) -> None:
    """Start a cluster on this machine: API server, fake nodes, scheduler.

    Everything listens on the loopback interface only, unless --listen names an address, and lives
    in memory, unless --data names a directory. A kubeconfig for kubectl, or any other client, is
    written first.
    """
    _refuse_waiting_for_nobody(no_scheduler and exit_when_settled and not empty)
    page = not (no_scheduler or no_dashboard or exit_when_settled)
    groups, emulation = others.pop("groups"), _emulation(others)
    life, wanted, server = _split(others)
    kubeconfig = kubeconfig_path(life["name"], life["kubeconfig_out"])
    # First of all: a process with threads, as libraries start them, should not fork.
    detached = _detached(kubeconfig, until_settled=exit_when_settled) if life["detach"] else None
    from moorage.base.rng import Streams
    from moorage.cli.run.scheduler_options import SchedulerOptions
    from moorage_sandbox.sandbox.up import UpPlan

    configured = checked(config, plugins, emulation, groups=groups)
    server["version"], server["custom_kinds"] = configured.version, configured.custom_kinds
    seed, nodes = Streams().seed if seed is None else seed, templates_of(wanted)
    settings = server_settings(server, nodes, seed, default_nodes=are_default(wanted))
    own = _scheduler_kubeconfig(kubeconfig) if settings.rbac else None
    plan = UpPlan(
        kubeconfig=kubeconfig,
        scheduler_kubeconfig=own,
        objects=list if empty else partial(_first_objects, configured.names),
        scheduler=not no_scheduler,
        page=page,
        until_settled=exit_when_settled,
        seed=seed,
        watch=output != "quiet" and detached is None,
        served=None if no_scheduler else configured.names,
        autoscale=wanted["autoscale"],
        example="" if empty or no_scheduler else _FITS_NOWHERE,
        on_up=detached.let_go if detached else _nothing,
    )
    view = view_of(output, detached=detached is not None)
    options = SchedulerOptions(
        kubeconfig=str(own or kubeconfig),
        config=config,
        seed=seed,
        plugins=plugins,
        groups=groups,
        flags=_flags(settings, emulation, own),
        free_port=True,
        page=_PAGE if page else "",
        page_acts=str(kubeconfig.resolve()),
    )
    scaling = _scaling(wanted, kubeconfig, options, settings.pace, single=single_process)
    scheduler = None if no_scheduler else options
    parts = _parts(settings, scheduler, scaling=scaling, single=single_process, view=view)
    with _without_timeline_afterwards(settings):
        live_through(plan, parts, view, life)


@contextmanager
def _without_timeline_afterwards(settings: ServerSettings) -> Iterator[None]:
    try:
        yield
    finally:
        if settings.pace.timeline:
            Path(settings.pace.timeline).unlink(missing_ok=True)


def _refuse_waiting_for_nobody(waits: bool) -> None:
    if waits:
        raise click.UsageError(
            "--exit-when-settled waits for a scheduler, and --no-scheduler starts none"
        )


def _nothing() -> None:
    """Do nothing once everything runs in the foreground."""


def _split(others: dict[str, Any]) -> tuple[LifeOptions, NodeOptions, ServerOptions]:
    """Return the options of the sandbox's life, of its nodes, and of its API server."""
    life = {name: others.pop(name) for name in LifeOptions.__annotations__}
    nodes = {name: others.pop(name) for name in NodeOptions.__annotations__}
    return (
        cast("LifeOptions", life),
        cast("NodeOptions", nodes),
        cast("ServerOptions", others),
    )


def _detached(kubeconfig: Path, *, until_settled: bool) -> Detached:
    """Go on in the background; the process in the foreground ends here, once that is ready."""
    if until_settled:
        raise click.UsageError(
            "--detach returns once pods are scheduled; `moorage wait --for=settled` waits further"
        )
    from moorage.base.running_sandboxes import log_of
    from moorage_sandbox.sandbox.detaching import detach

    found = detach(log_of(kubeconfig))
    if isinstance(found, int):
        raise SystemExit(found)
    return found


def _emulation(others: dict[str, Any]) -> dict[str, object]:
    """Take the version and the gates out of the options: kube-scheduler's flags, where given."""
    flags = {
        "emulated-version": others.pop("version"),
        "min-compatibility-version": others.pop("oldest"),
        "feature-gates": others.pop("gates"),
    }
    return {name: value for name, value in flags.items() if value}


def _scheduler_kubeconfig(kubeconfig: Path) -> Path:
    """Return the path of the scheduler's kubeconfig, next to the user's kubeconfig."""
    return kubeconfig.with_name(f"{kubeconfig.name}-scheduler")


def _flags(
    settings: ServerSettings, emulation: Mapping[str, object], reviewing: Path | None
) -> dict[str, object]:
    """Return kube-scheduler's own flags for the scheduler of a sandbox.

    Parameters
    ----------
    emulation
        The flags of the emulated version and of feature gates.
    reviewing
        The kubeconfig with which the scheduler asks who calls its port, and what the caller may
        read; None: everybody on this machine may read everything, as with the API server.
    """
    # Several sandboxes may run on one machine, so none serves health and metrics on the usual port
    # (`SchedulerOptions.free_port`).
    flags: dict[str, object] = {"bind-address": "127.0.0.1", "secure-port": 0}
    if reviewing is None:
        flags["authorization-always-allow-paths"] = "/*"
    else:
        flags["authentication-kubeconfig"] = flags["authorization-kubeconfig"] = str(reviewing)
    flags.update(emulation)
    if settings.pace.speed != 1:
        # A lease of fifteen fast seconds is lost whenever the machine is briefly busy.
        flags["leader-elect"] = False
    return flags


def _scaling(
    wanted: NodeOptions, kubeconfig: Path, options: SchedulerOptions, pace: Pace, *, single: bool
) -> AutoscalerSettings | None:
    """Return the settings of the autoscaler's process; None without one."""
    if not wanted["autoscale"]:
        return None
    if single:
        raise click.UsageError("--autoscale needs a process of its own; leave out --single-process")
    from moorage_sandbox.sandbox.settings import AutoscalerSettings

    return AutoscalerSettings(
        kubeconfig=str(kubeconfig),
        bounds=wanted["autoscale"],
        idle=wanted["autoscale_idle"],
        shapes=tuple(wanted["shapes"]),
        config=options.config,
        plugins=options.plugins,
        groups=options.groups,
        seed=options.seed,
        pace=pace,
    )


def _parts(
    settings: ServerSettings,
    options: SchedulerOptions | None,
    *,
    scaling: AutoscalerSettings | None,
    single: bool,
    view: View,
) -> Parts:
    if single and settings.pace.speed != 1:
        raise click.UsageError("--speed needs processes of their own; leave out --single-process")
    if single:
        return _loop_parts(settings, options)
    from moorage_sandbox.cli.up.scheduler_settings import SchedulerSettings
    from moorage_sandbox.sandbox.processes.child_process import program_of
    from moorage_sandbox.sandbox.processes.parts import ProcessParts

    scheduler = autoscaler = None
    if options is not None:
        scheduler = program_of(
            "moorage_sandbox.cli.up.scheduler_process",
            SchedulerSettings(options=options, pace=settings.pace),
        )
    if scaling is not None:
        autoscaler = program_of("moorage_sandbox.cli.scale.autoscaler_process", scaling)
    return ProcessParts(settings, scheduler, autoscaler=autoscaler, on_message=view.message)


def _loop_parts(settings: ServerSettings, options: SchedulerOptions | None) -> Parts:
    from moorage.cli.run.scheduler_options import StartListeners
    from moorage.cli.run.scheduling import schedule
    from moorage_sandbox.sandbox.processes.loop_parts import LoopParts

    clock = settings.pace.clock()

    def scheduler(
        on_ready: Callable[[], None], on_url: Callable[[str], None]
    ) -> Coroutine[Any, Any, None]:
        assert options is not None, "without options nobody starts a scheduler"
        return schedule(options, clock, StartListeners(on_ready, on_url, on_url))

    return LoopParts(settings, scheduler, clock=clock)


def _first_objects(served: frozenset[str]) -> list[dict[str, object]]:
    """Return the first objects; pods go to the profiles in turn where the default one is missing.

    Their owners come last and take over the pods that are there: so `kubectl drain` evicts the pods
    without being forced, and an evicted pod is made again as in a cluster.
    """
    from importlib import resources

    from moorage.api.manifest_text import parse_manifests
    from moorage.api.resources import by_kind
    from moorage_sandbox.cli.apply.patch import with_last_applied

    text = resources.files("moorage_sandbox.sandbox").joinpath("first.yaml").read_bytes()
    # Annotated as by `apply`, so that the file can be changed and applied again.
    objects = parse_manifests(text, "first.yaml")
    for obj in objects:
        resource = by_kind(obj["kind"], obj["apiVersion"])
        if resource is not None and resource.namespaced:
            obj["metadata"]["namespace"] = "default"
    pods = [obj for obj in objects if obj["kind"] == "Pod"]
    if DEFAULT_NAMES.isdisjoint(served):
        for pod, name in zip(pods, cycle(sorted(served)), strict=False):
            pod["spec"]["schedulerName"] = name
    # The pod that fits nowhere has no owner: what makes it fit is applied to the pod itself, and an
    # owner would make it again as it was.
    owners = _owners_of([pod for pod in pods if pod["metadata"]["name"] != _FITS_NOWHERE])
    return [with_last_applied(obj) for obj in (*objects, *owners)]


def _owners_of(pods: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return an owner for each kind of pod; the pods get a label by which it takes them over."""
    alike: dict[str, list[dict[str, Any]]] = {}
    for pod in pods:
        meta = pod["metadata"]
        same = (meta.get("labels"), meta.get("annotations"), pod["spec"])
        alike.setdefault(repr(same), []).append(pod)
    owners: dict[str, dict[str, Any]] = {}
    for replicas in alike.values():
        first = replicas[0]["metadata"]["name"]
        stem, _, number = first.rpartition("-")
        name = stem if number.isdigit() and stem not in owners else first
        for pod in replicas:
            pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), _LABEL: name}
        owners[name] = _owner_of(replicas, name)
    return list(owners.values())


def _owner_of(replicas: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the Job of pods that end, or the ReplicaSet of pods that run on."""
    first, count = replicas[0], len(replicas)
    meta = {key: first["metadata"].get(key) or {} for key in ("labels", "annotations")}
    template = {"metadata": meta, "spec": first["spec"]}
    spec = {"selector": {"matchLabels": {_LABEL: name}}, "template": copy.deepcopy(template)}
    if first["spec"].get("restartPolicy") == "Never":
        for pod in replicas:
            pod["metadata"]["finalizers"] = [_TRACKING]  # or a Job does not count the pod
        sizes: dict[str, Any] = {"parallelism": count, "completions": count, "manualSelector": True}
        version, kind = "batch/v1", "Job"
    else:
        sizes, version, kind = {"replicas": count}, "apps/v1", "ReplicaSet"
    metadata = {"name": name, "namespace": "default", "labels": dict(meta["labels"])}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {**sizes, **spec}}
