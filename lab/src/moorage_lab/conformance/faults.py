"""Recorded faults of kube-scheduler v1.36.2: where a recording is wrong, and moorage differs.

Read by `runner` before the comparison. The lists are exact: a place that they do not name has to be
equal, and so has everything around a place that they name. The tests ask that each place differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

Json = dict[str, Any]


class WrongRows(NamedTuple):
    """A fault that decides about pods.

    Parameters
    ----------
    subject
        What kube-scheduler does.
    pods
        By case, the pods whose rows follow from the fault.
    """

    subject: str
    pods: Mapping[str, tuple[str, ...]]


class ForgottenWakeUps(NamedTuple):
    """A fault of a hint: it says Skip although the event may help.

    Parameters
    ----------
    subject
        What kube-scheduler does not hear.
    plugin, events
        The hint: recorded with Skip, or not at all, it may be Queue here. A recorded Queue has to
        be Queue.
    """

    subject: str
    plugin: str
    events: tuple[str, ...]


WRONG_ROWS: Final[tuple[WrongRows, ...]] = (
    WrongRows(
        "counters and constraints of a rejected device stay taken "
        "(kubernetes#140436, fixed in v1.36.3)",
        {
            "public/dra/evaluate/006": ("default/p03", "default/p06", "default/p07", "default/p08"),
            "public/dra/evaluate/020": ("default/p01", "default/p02", "default/p03"),
            "public/dra/evaluate/034": ("default/p01", "default/p02"),
            "public/dra/evaluate/048": ("default/p03",),
            "public/dra/evaluate/062": ("team-b/p07", "default/p08"),
            "public/dra/evaluate/076": ("default/p01", "default/p07"),
            "public/dra/sequence/020": ("default/p03",),
            "public/dra/sequence/034": ("default/p01", "default/p02", "default/p03"),
            "public/dra/sequence/048": ("default/p02", "default/p07"),
        },
    ),
)

FORGOTTEN: Final[tuple[ForgottenWakeUps, ...]] = (
    ForgottenWakeUps(
        "affinity: a peer, or a pod that one of several terms is about, goes or is relabelled "
        "(kubernetes#141354, #139161, #141953)",
        "InterPodAffinity",
        ("AssignedPod/Delete", "AssignedPod/UpdatePodLabel"),
    ),
    ForgottenWakeUps(
        "affinity: a node comes, goes, or leaves the domain of a pod with anti-affinity",
        "InterPodAffinity",
        ("Node/Add", "Node/UpdateNodeLabel", "Node/Delete"),
    ),
    ForgottenWakeUps(
        "spread: a node leaves the pod's node selector or affinity",
        "PodTopologySpread",
        ("Node/UpdateNodeLabel",),
    ),
    ForgottenWakeUps(
        "volumes: a CSI limit goes",
        "NodeVolumeLimits",
        ("storage.k8s.io/CSINode/Update",),
    ),
    ForgottenWakeUps(
        "volumes: a node without a CSI limit comes, or a class, claim or volume changes",
        "NodeVolumeLimits",
        (
            "Node/Add",
            "storage.k8s.io/StorageClass/Delete",
            "PersistentVolumeClaim/Update",
            "PersistentVolume/Delete",
        ),
    ),
    ForgottenWakeUps(
        "volumes: a pod with the disk goes in another namespace, or a node with a claim in use",
        "VolumeRestrictions",
        ("AssignedPod/Delete", "Node/Delete"),
    ),
    ForgottenWakeUps(
        "volumes: a CSIDriver stops tracking capacity while a pod waits with a claim",
        "VolumeBinding",
        ("storage.k8s.io/CSIDriver/Update",),
    ),
)

_WIDER: Final = {fault.plugin for fault in FORGOTTEN}
"""Plugins that hear of more events here than in kube-scheduler; to all others, they say Skip."""


def without_faults(case: str, expected: Json, answer: Json) -> tuple[Json, list[str]]:
    """Replace what a recording has at the places of known faults by moorage's answer.

    Parameters
    ----------
    case
        Name of the scenario.
    expected, answer
        ``expected`` of the recorded case, and moorage's answer in the same shape.

    Returns
    -------
    tuple of dict and list of str
        The recording to compare with, and the subject of each fault that it holds.
    """
    subjects: dict[str, None] = {}
    for fault in WRONG_ROWS:
        changed = _with_rows(expected, answer, fault.pods.get(case, ()))
        if changed != expected:
            expected = changed
            subjects[fault.subject] = None
    if "events" in expected and "events" in answer:
        pairs = zip(expected["events"], answer["events"], strict=False)
        events = [_with_hints(theirs, ours, subjects) for theirs, ours in pairs]
        expected |= {"events": events + expected["events"][len(events) :]}
    return expected, [*subjects]


def _with_rows(expected: Json, answer: Json, pods: tuple[str, ...]) -> Json:
    if not pods:
        return expected
    field = "pods" if "pods" in expected else "sequence"
    ours = {row["pod"]: row for row in answer.get(field, ())}
    rows = [ours.get(row["pod"], row) if row["pod"] in pods else row for row in expected[field]]
    return expected | {field: rows}


def _with_hints(expected: Json, answer: Json, subjects: dict[str, None]) -> Json:
    pairs = zip(expected["hints"], answer["hints"], strict=False)
    hints = [_with_answers(theirs, ours, subjects) for theirs, ours in pairs]
    return expected | {"hints": hints + expected["hints"][len(hints) :]}


def _with_answers(expected: Json, answer: Json, subjects: dict[str, None]) -> Json:
    """Replace the answers to one cluster event that a fault explains."""
    pods: Json = {pod: dict(asked) for pod, asked in expected.get("pods", {}).items()}
    for pod, asked in answer.get("pods", {}).items():
        for plugin, ours in asked.items():
            theirs = pods.get(pod, {}).get(plugin)
            if ours == "Skip" and theirs is None and plugin in _WIDER:
                pods.setdefault(pod, {})[plugin] = ours
            if ours == "Queue" and theirs != ours:
                for fault in FORGOTTEN:
                    if plugin == fault.plugin and expected["event"] in fault.events:
                        pods.setdefault(pod, {})[plugin] = ours
                        subjects[fault.subject] = None
    return expected | ({"pods": pods} if pods else {})
