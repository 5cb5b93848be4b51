"""The file that describes an experiment: read whole, every fault listed, unknown fields refused.

Place in the flow: first stop of an experiment. `sources` reads the files that a scenario names,
`variants` its configurations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from moorage.api.schedules.durations import parse_duration
from moorage.base.clock import NS_PER_SECOND
from moorage.base.errors import ConfigError
from moorage.config.load import file_text
from moorage.config.strict import Reader, invalid, parse_documents
from moorage.plugins.gpu_share.policies import POLICIES

API_VERSION: Final = "moorage.dev/v1alpha1"
KIND: Final = "Simulation"
_LAW_NUMBER_MAX: Final = 100.0
"""Of a sigma or a shape: beyond it, run times are 0 or without end."""

Spacing = Literal["given", "together", "spaced", "poisson", "bursts", "daily"]
Length = Literal[
    "given", "forever", "fixed", "exponential", "uniform", "lognormal", "weibull", "empirical"
]


class Column(msgspec.Struct, frozen=True, rename="camel"):
    """A column of a trace, and the unit that its amounts lack.

    Parameters
    ----------
    column
        Name in the heading.
    unit
        Suffix of a quantity (``m``, ``Mi``), or unit of a time (``ms``, ``m``, ``h``).
    """

    column: str
    unit: str = ""


class Arrivals(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """When the pods of a source come.

    Parameters
    ----------
    kind
        ``given``: as the source says, together where it says nothing. ``together``: all at
        `after`. ``spaced``: one every `every`. ``poisson``: at random, `every` apart on average.
        ``bursts``: `size` at once, every `every`. ``daily``: at random, `every` apart on average
        over a day, most often at `peak_hour`.
    after
        Go duration; when the first pod comes.
    every
        Go duration; the time between arrivals or bursts.
    size
        Pods in a burst.
    peak_hour
        Hour of the day with the most arrivals; a run begins at midnight.
    swing
        How far the rate of arrivals departs from its mean at that hour, from 0 to 1.
    speed
        Times are divided by it: 2 makes pods come twice as fast.
    order
        ``given``, or ``shuffled`` by the seed.
    """

    kind: Spacing = "given"
    after: str = "0"
    every: str = "1s"
    size: int = 10
    peak_hour: float = 14.0
    swing: float = 0.8
    speed: float = 1.0
    order: Literal["given", "shuffled"] = "given"


class RunTime(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The running time of the pods of a source, from the start on their node.

    Parameters
    ----------
    kind
        ``given``: as the source says, for ever where it says nothing. ``forever``. ``fixed``:
        `mean`. ``exponential``: at random with the mean `mean`. ``uniform``: at random between
        `least` and `most`. ``lognormal``: `median`, and `sigma` of the logarithm. ``weibull``:
        `scale` and `shape`. ``empirical``: one of the seconds in a column of a file.
    mean, least, most, median, scale
        Go durations.
    sigma, shape
        Numbers above 0.
    file, column
        CSV or Parquet, and the name of its column.
    """

    kind: Length = "given"
    mean: str = "10m"
    least: str = "1m"
    most: str = "10m"
    median: str = "10m"
    sigma: float = 1.0
    scale: str = "10m"
    shape: float = 1.0
    file: str = ""
    column: str = "runtime"


class NodeSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Nodes of one source: exactly one of `file`, `trace` and `shape`.

    Parameters
    ----------
    file
        Manifests, a List of kubectl or a dump, with objects of other kinds and pods that have a
        node already.
    trace
        CSV or Parquet, a row a node.
    shape, count
        Nodes as of ``moorage up --shape``, and their number.
    preset, columns
        How the columns of a trace are to be understood.
    """

    file: str = ""
    trace: str = ""
    shape: str = ""
    count: int | None = None
    preset: str = ""
    columns: dict[str, str | Column] = {}


class PodSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Pods of one source: exactly one of `file`, `trace`, `events` and `template`.

    Parameters
    ----------
    file
        Pod manifests.
    trace
        CSV or Parquet, a row a pod.
    events
        Events of kubectl (``get events -A -o json``): when pods came and ended.
    template, count
        A manifest, and the number of its copies. Next to `trace` and `events`: what rows leave out.
    preset, columns
        How the columns of a trace are to be understood.
    members
        Pods of a job: each copy of the template is a job of so many pods.
    arrivals, run_time
        When the pods come, and how long they run.
    give_up_after
        Go duration; a pod that has no node by then is gone. "" for a pod that waits for ever.
    resubmitted
        Whether a pod without an owner comes again when it is evicted, or its node fails.
    """

    file: str = ""
    trace: str = ""
    events: str = ""
    template: dict[str, Any] | None = None
    count: int | None = None
    preset: str = ""
    columns: dict[str, str | Column] = {}
    members: int = 1
    arrivals: Arrivals = Arrivals()
    run_time: RunTime = RunTime()
    give_up_after: str = ""
    resubmitted: bool = False


class Load(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The pods are drawn until they ask for a share of what the nodes have.

    Parameters
    ----------
    resource
        The resource that is summed.
    share
        Of the sum of the nodes' allocatable amounts, such as 1.3.
    """

    resource: str = "cpu"
    share: float = 1.0


class Failure(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A node that fails.

    Parameters
    ----------
    node
        Its name.
    at, for_
        Go durations: when, from the begin, and for how long; "" for ever.
    """

    node: str
    at: str
    for_: str = msgspec.field(default="", name="for")


class RandomFailures(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Nodes that fail at random, each on its own.

    Parameters
    ----------
    every, for_
        Go durations: mean time until a node fails, and mean time until it is back.
    until
        Go duration; no node fails later.
    """

    every: str
    until: str
    for_: str = msgspec.field(default="10m", name="for")


class Configuration(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A configuration that is tried.

    Parameters
    ----------
    name
        Its name in tables.
    file
        A scheduler's configuration file; "" for the default profile.
    gpu_policy
        A policy that shares GPUs, instead of a file: GpuShare and this policy alone.
    plugins
        Plugins from outside, as of ``--plugin``.
    arguments
        Arguments by plugin, instead of those of the file.
    weights
        Weights at the point score by plugin; a plugin that is not enabled is enabled, and 0
        disables it.
    """

    name: str
    file: str = ""
    gpu_policy: str = ""
    plugins: list[str] = []
    arguments: dict[str, dict[str, Any]] = {}
    weights: dict[str, int] = {}


class Scenario(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An experiment.

    Parameters
    ----------
    name
        Its name in the report.
    nodes, pods, objects
        Where nodes and pods come from; files with objects of other kinds.
    load
        How many of the pods come; None for all of them, once.
    failures, random_failures
        Nodes that fail.
    emulated_version, min_compatibility_version
        The Kubernetes versions of every configuration; "" for those that each names.
    seeds
        The seeds, or how many: 3 is 1, 2, 3.
    configurations
        What is compared; the default profile alone if empty.
    grid
        Values by argument (``Plugin.field``, ``weights.Plugin``): each configuration is tried with
        every combination of them.
    bad_rows
        ``fatal``, or ``leaveOut``: bad rows of traces, and objects that cannot be read.
    until
        Go duration; where a run ends at the latest. "" for when nothing is to come any more.
    every
        Go duration between two points of the series; "" for about 200 points.
    domain
        Label of nodes by which series are told apart.
    """

    api_version: Literal["moorage.dev/v1alpha1"]
    kind: Literal["Simulation"]
    name: str = ""
    nodes: list[NodeSource]
    pods: list[PodSource]
    objects: list[str] = []
    load: Load | None = None
    failures: list[Failure] = []
    random_failures: RandomFailures | None = None
    emulated_version: str = ""
    min_compatibility_version: str = ""
    seeds: int | list[int] = 1
    configurations: list[Configuration] = []
    grid: dict[str, list[Any]] = {}
    bad_rows: Literal["fatal", "leaveOut"] = "fatal"
    until: str = ""
    every: str = ""
    domain: str = "topology.kubernetes.io/zone"

    @property
    def seed_list(self) -> list[int]:
        """The seeds of the runs."""
        return self.seeds if isinstance(self.seeds, list) else list(range(1, self.seeds + 1))


def read_scenario(file: Path) -> Scenario:
    """Read the file of a scenario; files that it names are found next to it.

    Raises
    ------
    ConfigError
        The file cannot be read or has faults; every fault is listed.
    """
    documents = parse_documents(file_text(file), source=str(file))
    if len(documents) != 1:
        raise ConfigError([f"{len(documents)} documents: a scenario is one"], source=str(file))
    return scenario_of(documents[0], folder=file.parent, source=str(file))


def scenario_of(value: object, *, folder: Path, source: str = "the scenario") -> Scenario:
    """Return a scenario from plain values.

    Parameters
    ----------
    folder
        Where the files that it names are, unless their names are absolute.

    Raises
    ------
    ConfigError
        It has faults; every fault is listed.
    """
    reader = Reader()
    scenario = reader.convert_value(Scenario, value)
    faults = list(reader.faults)
    if scenario is not None:
        faults += _faults(scenario)
    if faults or scenario is None:
        raise ConfigError(faults, source=source)
    return _beside(scenario, folder)


def seconds_of(text: str) -> float:
    """Return a duration that was checked, in seconds; infinity for ""."""
    return parse_duration(text) / NS_PER_SECOND if text else float("inf")


def _faults(scenario: Scenario) -> Iterator[str]:
    """Yield the faults that are no matter of types."""
    for index, nodes in enumerate(scenario.nodes):
        path = f"nodes[{index}]"
        yield from _one_of(path, {"file": nodes.file, "trace": nodes.trace, "shape": nodes.shape})
        yield from _count(path, nodes.count, needed=bool(nodes.shape), when="shape")
    for index, pods in enumerate(scenario.pods):
        yield from _pod_faults(f"pods[{index}]", pods)
    if not scenario.nodes:
        yield "nodes: Required value: there are no nodes"
    if not scenario.pods:
        yield "pods: Required value: there are no pods"
    yield from _duration("until", scenario.until, empty=True)
    yield from _duration("every", scenario.every, empty=True, least=1e-3)
    for index, failure in enumerate(scenario.failures):
        yield from _duration(f"failures[{index}].at", failure.at)
        yield from _duration(f"failures[{index}].for", failure.for_, empty=True)
    if scenario.random_failures is not None:
        path = "randomFailures"
        yield from _duration(f"{path}.every", scenario.random_failures.every, least=1.0)
        yield from _duration(f"{path}.for", scenario.random_failures.for_, least=1.0)
        yield from _duration(f"{path}.until", scenario.random_failures.until)
    if scenario.load is not None and scenario.load.share <= 0:
        yield invalid("load.share", scenario.load.share, "must be greater than 0")
    if scenario.load is not None and any(pods.members > 1 for pods in scenario.pods):
        yield "load: Invalid value: single pods are drawn: leave it out where pods have members"
    yield from _choice_faults(scenario)


def _choice_faults(scenario: Scenario) -> Iterator[str]:
    seeds = scenario.seed_list
    if not seeds or min(seeds) < 0 or len(set(seeds)) != len(seeds):
        yield invalid("seeds", scenario.seeds, "write a number from 1 on, or different seeds")
    names = [each.name for each in scenario.configurations]
    for index, name in enumerate(names):
        if not name or name in names[:index]:
            yield invalid(f"configurations[{index}].name", name, "every configuration has its own")
    for index, each in enumerate(scenario.configurations):
        yield from _policy_faults(f"configurations[{index}].gpuPolicy", each)
    for path, values in scenario.grid.items():
        plugin, dot, field = path.partition(".")
        if not (plugin and dot and field):
            yield invalid(f"grid[{path}]", path, "write Plugin.argument or weights.Plugin")
        if not values:
            yield f"grid[{path}]: Required value: there are no values"


def _policy_faults(path: str, configuration: Configuration) -> Iterator[str]:
    policy = configuration.gpu_policy
    if policy and policy not in POLICIES:
        yield invalid(path, policy, f"write one of {', '.join(POLICIES)}")
    if policy and configuration.file:
        yield invalid(path, policy, "write a file or a gpuPolicy, not both")


def _pod_faults(path: str, pods: PodSource) -> Iterator[str]:
    sources = {"file": pods.file, "trace": pods.trace, "events": pods.events}
    if any(sources.values()) or pods.template is None:
        yield from _one_of(path, sources, more="template")
    copies = pods.template is not None and not any(sources.values())
    yield from _count(path, pods.count, needed=copies, when="template")
    yield from _duration(f"{path}.giveUpAfter", pods.give_up_after, empty=True)
    yield from _duration(f"{path}.arrivals.after", pods.arrivals.after)
    yield from _duration(f"{path}.arrivals.every", pods.arrivals.every, least=1e-9)
    yield from _law_faults(f"{path}.runTime", pods.run_time)
    if pods.members < 1:
        yield invalid(f"{path}.members", pods.members, "must be at least 1")
    if pods.members > 1 and not copies:
        yield invalid(f"{path}.members", pods.members, "only a template with a count has members")
    if not 0 <= pods.arrivals.swing <= 1:
        yield invalid(f"{path}.arrivals.swing", pods.arrivals.swing, "must be from 0 to 1")
    if not 0 <= pods.arrivals.peak_hour <= 24:
        yield invalid(f"{path}.arrivals.peakHour", pods.arrivals.peak_hour, "is no hour of a day")
    if pods.arrivals.speed <= 0:
        yield invalid(f"{path}.arrivals.speed", pods.arrivals.speed, "must be greater than 0")
    if pods.arrivals.size < 1:
        yield invalid(f"{path}.arrivals.size", pods.arrivals.size, "must be at least 1")


def _law_faults(path: str, law: RunTime) -> Iterator[str]:
    for name in ("mean", "least", "most", "median", "scale"):
        yield from _duration(f"{path}.{name}", getattr(law, name))
    for name in ("sigma", "shape"):
        if not 0 < getattr(law, name) <= _LAW_NUMBER_MAX:
            yield invalid(f"{path}.{name}", getattr(law, name), "must be above 0, and at most 100")
    if law.kind == "empirical" and not law.file:
        yield f"{path}.file: Required value: the file with the run times"
    elif law.kind != "empirical" and law.file:
        yield invalid(f"{path}.file", law.file, "only the kind empirical reads a file")


def _one_of(path: str, sources: Mapping[str, str], more: str = "") -> Iterator[str]:
    found = [name for name, value in sources.items() if value]
    if len(found) != 1:
        names = ", ".join([*sources, *([more] if more else [])])
        said = " and ".join(found) or "none"
        yield f"{path}: Invalid value: {said}: write exactly one of {names}"


def _count(path: str, count: int | None, *, needed: bool, when: str) -> Iterator[str]:
    if needed and count is None:
        yield f"{path}.count: Required value: how many of the {when}"
    elif not needed and count is not None:
        yield invalid(f"{path}.count", count, f"only a {when} has a count")
    elif count is not None and count < 1:
        yield invalid(f"{path}.count", count, "must be at least 1")


def _duration(path: str, text: str, *, empty: bool = False, least: float = 0.0) -> Iterator[str]:
    if not text and empty:
        return
    try:
        seconds = parse_duration(text) / NS_PER_SECOND
    except ValueError:
        yield invalid(path, text, "write a duration, such as 90s, 5m or 1h30m")
        return
    if seconds < least:
        yield invalid(path, text, f"must be at least {least:g}s" if least else "is negative")


def _beside(scenario: Scenario, folder: Path) -> Scenario:
    """Return a scenario with the full names of its files."""

    def full(name: str) -> str:
        return str(folder / name) if name else ""

    def plugin(reference: str) -> str:
        path, colon, name = reference.rpartition(":")
        return f"{folder / path}:{name}" if colon and path.endswith(".py") else reference

    change = msgspec.structs.replace
    return change(
        scenario,
        objects=[full(each) for each in scenario.objects],
        nodes=[
            change(each, file=full(each.file), trace=full(each.trace)) for each in scenario.nodes
        ],
        pods=[
            change(
                each,
                file=full(each.file),
                trace=full(each.trace),
                events=full(each.events),
                run_time=change(each.run_time, file=full(each.run_time.file)),
            )
            for each in scenario.pods
        ],
        configurations=[
            change(each, file=full(each.file), plugins=[plugin(name) for name in each.plugins])
            for each in scenario.configurations
        ],
    )
