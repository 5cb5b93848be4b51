"""The labels by which pods name their job, and the number of its members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.api.coscheduling import (
    GROUP_LABEL,
    MIN_AVAILABLE_LABEL,
    NAME_LABEL,
    OLD_GROUP_LABEL,
)
from moorage.api.pod import Pod

Key = tuple[str, str]
"""Namespace of a job, and its name."""


def job_of(labels: Mapping[str, str]) -> str:
    """Return the name of the job that the labels of a pod name; "" for none."""
    named = (labels.get(each) for each in (GROUP_LABEL, OLD_GROUP_LABEL, NAME_LABEL))
    return next((name for name in named if name), "")


def member_of(manifest: dict[str, Any], job: str, members: int) -> dict[str, Any]:
    """Return a pod's manifest with the labels of a member.

    The labels make a group of the pods where the configuration schedules groups by them, and mean
    nothing elsewhere.
    """
    labels = {NAME_LABEL: job, MIN_AVAILABLE_LABEL: str(members)}
    metadata = manifest["metadata"]
    metadata["labels"] = {**metadata.get("labels", {}), **labels}
    return manifest


def members_of(labels: Mapping[str, str]) -> int:
    """Return how many pods of a job have to run; 1 for a pod whose labels do not say it."""
    number = labels.get(MIN_AVAILABLE_LABEL, "") if labels.get(NAME_LABEL) else ""
    return int(number) if number.isascii() and number.isdigit() else 1


def key_of(pod: Pod) -> Key:
    """Return the job of a pod: its own name where it has no other member."""
    return pod.namespace, job_of(pod.metadata.labels) or pod.name
