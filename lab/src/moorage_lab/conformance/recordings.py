"""Recordings of kube-scheduler's decisions, read from files: first stop of the conformance runner.

Each line is a JSON object: a scenario (cluster and pending pods) and the expected answer. Next:
`needs` decides whether a case can be run at all, `case` runs it. The format is
described in lab/tests/conformance/data/README.md.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from moorage.api.codec import decode, decode_untyped
from moorage.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.pod_group import PodGroup
from moorage.api.policy import PodDisruptionBudget, PriorityClass
from moorage.api.volume import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from moorage.api.workloads import (
    Namespace,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from moorage.base.errors import DecodeError, UsageError
from moorage.config.gate_table import V1_36

SUFFIXES: Final = (".jsonl.gz", ".jsonl")

Json = dict[str, Any]


class RecordedObjects(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster of a scenario; fields are named as in the recordings, a missing list is empty."""

    nodes: list[Node] = []
    pods: list[Pod] = []
    namespaces: list[Namespace] = []
    services: list[Service] = []
    replication_controllers: list[ReplicationController] = msgspec.field(
        default_factory=list, name="replicationcontrollers"
    )
    replica_sets: list[ReplicaSet] = msgspec.field(default_factory=list, name="replicasets")
    stateful_sets: list[StatefulSet] = msgspec.field(default_factory=list, name="statefulsets")
    persistent_volumes: list[PersistentVolume] = msgspec.field(
        default_factory=list, name="persistentvolumes"
    )
    persistent_volume_claims: list[PersistentVolumeClaim] = msgspec.field(
        default_factory=list, name="persistentvolumeclaims"
    )
    storage_classes: list[StorageClass] = msgspec.field(default_factory=list, name="storageclasses")
    csi_nodes: list[CSINode] = msgspec.field(default_factory=list, name="csinodes")
    csi_drivers: list[CSIDriver] = msgspec.field(default_factory=list, name="csidrivers")
    csi_storage_capacities: list[CSIStorageCapacity] = msgspec.field(
        default_factory=list, name="csistoragecapacities"
    )
    volume_attachments: list[VolumeAttachment] = msgspec.field(
        default_factory=list, name="volumeattachments"
    )
    pod_disruption_budgets: list[PodDisruptionBudget] = msgspec.field(
        default_factory=list, name="poddisruptionbudgets"
    )
    priority_classes: list[PriorityClass] = msgspec.field(
        default_factory=list, name="priorityclasses"
    )
    device_classes: list[DeviceClass] = msgspec.field(default_factory=list, name="deviceclasses")
    resource_slices: list[ResourceSlice] = msgspec.field(
        default_factory=list, name="resourceslices"
    )
    resource_claims: list[ResourceClaim] = msgspec.field(
        default_factory=list, name="resourceclaims"
    )
    pod_groups: list[PodGroup] = msgspec.field(default_factory=list, name="podgroups")


class NodeChanges(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Changes of nodes in the middle of a sequence, made in the order of the fields.

    Parameters
    ----------
    before
        Index of the pending pod scheduled next.
    remove_nodes
        Names of nodes.
    add_nodes, update_nodes
        Nodes.
    """

    before: int
    remove_nodes: list[str] = []
    add_nodes: list[Node] = []
    update_nodes: list[Node] = []


class ObjectEvent(msgspec.Struct, frozen=True):
    """A change of one object, as plain values.

    Parameters
    ----------
    resource
        The kind of the object.
    action
        ``Add``, ``Update`` or ``Delete``.
    old, new
        The object before and after; None where the object does not exist.
    """

    resource: str
    action: str
    old: Json | None = None
    new: Json | None = None


class Vector(msgspec.Struct, frozen=True, kw_only=True):
    """A case of upstream's table tests: what is asked.

    Parameters
    ----------
    file
        The test file in kubernetes/kubernetes.
    test, case
        Names of the test function and of its case.
    plugin, args
        The plugin, "" for none, and its arguments as plain values; None means the default ones.
        Without a plugin: the arguments of the function under test.
    points
        What the test looks at; the data's README has the names.
    feasible
        Names of the nodes that are scored; empty means all.
    filters
        Further plugins that filter, in tests of preemption.
    error
        What the message of an error has to contain.
    options
        Switches of the function under test, in mode ``requests``.
    progress
        Members with a place, and members left, at each call of PlacementFeasible.
    """

    file: str
    test: str
    case: str
    points: list[str]
    plugin: str = ""
    args: Json | None = None
    feasible: list[str] = []
    filters: list[str] = []
    error: str = ""
    options: list[str] = []
    progress: list[tuple[int, int]] = []


class Gate(msgspec.Struct, frozen=True):
    """A made-up PreEnqueue plugin: it lets in pods that have one of its labels."""

    plugin: str
    labels: list[str] = []


class QueueScript(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of a scheduling queue, one after the other.

    Parameters
    ----------
    steps
        Lists of an operation and its arguments; the data's README has the operations.
    pods
        The pods by the keys that steps use; a newer version of a pod has a key of its own.
    gates
        The PreEnqueue plugins.
    hints
        ``plugin``, ``event`` and ``answer`` of each hint, in the order in which they are asked.
    settings
        Times of the queue in seconds, named as in the configuration, and ``popFromBackoff``.
    """

    steps: list[list[Any]]
    pods: dict[str, Pod] = {}
    gates: list[Gate] = []
    hints: list[dict[str, str]] = []
    settings: Json = {}


class GroupMembers(msgspec.Struct, frozen=True):
    """The members of a group that wait.

    Parameters
    ----------
    queued
        Name, number of attempts and time in seconds of each pod, in the order in which they came.
    removed
        Names of the pods that went again.
    """

    queued: list[tuple[str, int, float]]
    removed: list[str] = []


class PlacementScorer(msgspec.Struct, frozen=True):
    """A made-up PlacementScore plugin: its weight, its scores, and its status if it fails."""

    scores: dict[str, int] = {}
    weight: int = 1
    status: list[str] = []


class GroupCycleScript(msgspec.Struct, frozen=True):
    """The made-up plugins of the cycle of a group.

    Parameters
    ----------
    filter
        Code and reasons by pod or node; a pod passes on any other node.
    feasible
        For each placement the codes of PlacementFeasible, the first one before any pod is tried.
        Empty: always Success.
    placements
        Nodes by placement, in the order of trying; None for a group that may go anywhere.
    generated
        Code and reasons of PlacementGenerate if it fails.
    scorers
        The PlacementScore plugins.
    """

    filter: dict[str, list[str]] = {}
    feasible: list[list[str]] = []
    placements: dict[str, list[str]] | None = None
    generated: list[str] = []
    scorers: list[PlacementScorer] = []


class Scenario(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A cluster state with pods waiting for a node.

    Parameters
    ----------
    name
        ``<set>/<family>/<mode>/<seed>``.
    family
        The area the scenario stresses.
    mode
        How the scenario is run, e.g. as a sequence.
    config
        ``KubeSchedulerConfiguration`` as plain values; None means the default one.
    feature_gates
        Gates that differ from their defaults.
    emulated_version
        The version of kube-scheduler that answered; recordings without one are of 1.36.
    compact
        Rows of the sequence carry the number of winners instead of their names.
    objects
        The cluster.
    pending
        Pods without a node, in order of arrival.
    changes
        Changes of nodes between the pods of a sequence.
    events
        Changes of objects; each is judged by itself for all pending pods.
    extender
        How each extender of the configuration answers.
    vector
        The case of upstream's tests that was transcribed; no kube-scheduler ran it.
    queue
        What happens to the queue, in mode ``queue``.
    members
        The members of a group, in mode ``members``.
    group_cycle
        The plugins of a group's cycle, in mode ``groupCycle``.
    places
        The nodes of members without the pods that may be evicted, in mode ``groupPreemption``.
    raw
        The scenario as plain values, if whole objects are compared; not part of the recording.
    """

    name: str
    family: str
    mode: str
    config: Json | None = None
    feature_gates: dict[str, bool] = {}
    emulated_version: str = V1_36
    compact: bool = False
    objects: RecordedObjects = RecordedObjects()
    pending: list[Pod] = []
    changes: list[NodeChanges] = []
    events: list[ObjectEvent] = []
    extender: list[Json] = []
    vector: Vector | None = None
    queue: QueueScript | None = None
    members: GroupMembers | None = None
    group_cycle: GroupCycleScript | None = None
    places: dict[str, str] = {}
    raw: Json = {}


class Case(msgspec.Struct, frozen=True):
    """One line of a recording: a scenario and kube-scheduler's answer."""

    scenario: Scenario
    expected: Json


def recording_files(paths: Iterable[str | Path]) -> list[Path]:
    """Return the recordings named by files and directories, in order, each once.

    Parameters
    ----------
    paths
        Files, or directories holding ``*.jsonl`` and ``*.jsonl.gz``, at any depth.

    Raises
    ------
    UsageError
        A path does not exist, or a directory holds no recording.
    """
    files: dict[Path, None] = {}
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.name.endswith(SUFFIXES))
            if not inside:
                raise UsageError(f"{path}: holds no recordings (*.jsonl, *.jsonl.gz)")
            files.update(dict.fromkeys(inside))
        elif path.is_file():
            files[path] = None
        else:
            raise UsageError(f"{path}: no such file or directory")
    if not files:
        raise UsageError("name a file or a directory with recordings")
    return list(files)


def _with_raw(case: Case, line: bytes) -> Case:
    """Add the plain values to a case that compares whole objects."""
    if not case.scenario.extender:
        return case
    raw = decode_untyped(line)["scenario"]
    return Case(msgspec.structs.replace(case.scenario, raw=raw), case.expected)


def read_cases(path: Path) -> Iterator[Case]:
    """Yield the cases of a recording, one a line.

    Raises
    ------
    UsageError
        The file cannot be read, or a line is not a case; names the line.
    """
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        try:
            yield _with_raw(decode(Case, line), line)
        except DecodeError as error:
            raise UsageError(f"{path}: line {number} is not a recorded case: {error}") from error


def count_cases(files: Sequence[Path]) -> int:
    """Return how many cases the files hold, for showing progress."""
    return sum(1 for path in files for line in _lines(path) if line.strip())


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as lines:
            yield from lines
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
