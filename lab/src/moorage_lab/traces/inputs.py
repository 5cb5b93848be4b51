"""Everything that a run needs, as data that any process can be given.

Place in the flow: `sources` to here to `run`. Manifests become what an API server would store:
defaults, checks, priorities of classes.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from moorage.api.codec import decode_untyped, encode
from moorage.base.clock import ManualClock
from moorage.base.errors import UsageError
from moorage.base.rng import Random, Streams
from moorage.virtual.objects import ClusterObjects
from moorage.what_if.rules.admission import Admission
from moorage_lab.traces.columns import Coming
from moorage_lab.traces.jobs.laws import known_run_times
from moorage_lab.traces.scenario import (
    Arrivals,
    Failure,
    Load,
    RandomFailures,
    RunTime,
    Scenario,
    seconds_of,
)
from moorage_lab.traces.sources import Manifest, read_sources, refuse

# The wall-clock time at which a run begins: 2026-01-01. Any would do.
START_NS: Final = 1_767_225_600_000_000_000
_AS_THEY_ARE: Final = ("Node", "Pod")
_OWNERS: Final = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob")


class Come(msgspec.Struct, frozen=True):
    """A pod that comes.

    Parameters
    ----------
    pod
        JSON of the pod as it would be stored, without uid.
    at, runs
        Seconds, as the source says them; None where it does not.
    """

    pod: bytes
    at: float | None
    runs: float | None


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The pods of one source.

    Parameters
    ----------
    pods
        In the order of the source.
    arrivals, run_time
        When they come, and how long they run.
    members
        Pods of a job; its pods come together and have one run time.
    run_times
        The seconds that an empirical law draws from.
    give_up_seconds
        How long a pod waits at the most.
    resubmitted
        Whether a pod without an owner comes again.
    """

    pods: list[Come]
    arrivals: Arrivals
    run_time: RunTime
    members: int
    run_times: list[float]
    give_up_seconds: float
    resubmitted: bool


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of every run of a scenario.

    Parameters
    ----------
    objects
        JSON of the objects that are there at the start.
    groups
        The pods that come.
    load, failures, random_failures
        As in the scenario.
    until_seconds, every_seconds
        Where a run ends at the latest, and the time between points of series; infinity for none.
    domain
        Label of nodes by which series are told apart.
    left_out
        A sentence for each bad row and object.
    """

    objects: list[bytes]
    groups: list[Group]
    load: Load | None = None
    failures: list[Failure] = []
    random_failures: RandomFailures | None = None
    until_seconds: float = float("inf")
    every_seconds: float = float("inf")
    domain: str = ""
    left_out: list[str] = []


def inputs_of(scenario: Scenario) -> Inputs:
    """Read the files of a scenario, and prepare its objects.

    Raises
    ------
    UsageError
        A file cannot be read, or an object would be refused by a server.
    """
    read = read_sources(scenario)
    preparing = Preparing()
    for manifest in read.objects:
        preparing.add_object(manifest)
    groups = []
    for source, coming in zip(scenario.pods, read.coming, strict=True):
        group = Group(
            pods=preparing.coming(coming),
            arrivals=source.arrivals,
            run_time=source.run_time,
            members=source.members,
            run_times=known_run_times(source.run_time),
            give_up_seconds=seconds_of(source.give_up_after),
            resubmitted=source.resubmitted,
        )
        groups.append(group)
    if scenario.bad_rows == "fatal":
        refuse(preparing.left_out)
    if not preparing.objects.nodes:
        raise UsageError("there are no nodes in the scenario")
    unknown = sorted({each.node for each in scenario.failures} - set(preparing.objects.nodes))
    if unknown:
        raise UsageError(f"failures: there is no node {', '.join(unknown)}")
    return Inputs(
        objects=preparing.objects_encoded,
        groups=groups,
        load=scenario.load,
        failures=scenario.failures,
        random_failures=scenario.random_failures,
        until_seconds=seconds_of(scenario.until),
        every_seconds=seconds_of(scenario.every),
        domain=scenario.domain,
        left_out=[*read.left_out, *preparing.left_out],
    )


class Preparing:
    """Turns manifests into stored objects.

    Attributes
    ----------
    objects
        The objects that are there at the start.
    objects_encoded
        Their JSON.
    left_out
        A sentence for each object that a server would refuse.
    """

    def __init__(self) -> None:
        self.objects = ClusterObjects()
        self.objects_encoded: list[bytes] = []
        self.left_out: list[str] = []
        # Only priorities and defaults are wanted; the uids of pods are drawn in each run.
        self._uids: Random = Streams(0).stream("simulate/objects")
        clock = ManualClock(START_NS)
        self._admission = Admission(self.objects, clock=clock, rng=self._uids)
        self._specs: dict[tuple[str, bytes], dict[str, Any]] = {}

    def add_object(self, manifest: Manifest) -> None:
        """Take in an object that is there at the start; without a uid it is new to the server."""
        kind, metadata = manifest.get("kind"), manifest.get("metadata") or {}
        if kind in _OWNERS and not metadata.get("uid"):
            raise UsageError(
                f"{kind} {metadata.get('name', '')}: no controller makes its pods in a simulation; "
                "write the pods themselves"
            )
        try:
            if kind == "Pod" and not metadata.get("uid"):
                manifest = {**self._stored(manifest), "status": manifest.get("status") or {}}
                manifest["metadata"]["uid"] = f"simulated-{len(self.objects_encoded)}"
            elif kind not in _AS_THEY_ARE and not metadata.get("uid"):
                manifest = self._admission.stored(manifest)
        except UsageError as problem:
            self.left_out.append(str(problem))
            return
        item, faults = encode(manifest), len(self.objects.unreadable)
        self.objects.add_json(item)
        if len(self.objects.unreadable) > faults:
            self.left_out.append(self.objects.unreadable[-1].text)
        else:
            self.objects_encoded.append(item)

    def coming(self, pods: list[Coming]) -> list[Come]:
        """Return pods as they would be stored; pods that would be refused are noted."""
        arrivals = []
        for each in pods:
            try:
                arrivals.append(Come(encode(self._stored(each.manifest)), each.at, each.runs))
            except UsageError as problem:
                self.left_out.append(str(problem))
        return arrivals

    def _stored(self, manifest: Manifest) -> Manifest:
        """Return a pod as it would be stored; pods with the same spec are looked at once."""
        metadata = dict(manifest.get("metadata") or {})
        metadata.setdefault("namespace", "default")
        spec = dict(manifest.get("spec") or {})
        # A trace may say a priority without a class, and a dump was admitted elsewhere.
        priority = spec.pop("priority", None)
        key = (metadata["namespace"], encode([spec, manifest.get("apiVersion")]))
        known = self._specs.get(key)
        if known is None:
            stored = self._admission.stored({**manifest, "metadata": metadata, "spec": spec})
            known = self._specs[key] = decode_untyped(encode(stored["spec"]))
            metadata.setdefault("name", stored["metadata"]["name"])
        if not metadata.get("name"):
            raise UsageError("Pod without a name: a pod of a scenario has one")
        if priority is not None:
            known = {**known, "priority": priority}
        for field in ("uid", "resourceVersion", "creationTimestamp"):
            metadata.pop(field, None)
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": known}
