"""The rows of the table of differences that are about devices and resource claims."""

from __future__ import annotations

from typing import Final

from tools.pages.deviation import Deviation

DEVICES: Final[tuple[Deviation, ...]] = (
    Deviation(
        subject="Counters and constraints of a device that is rejected, or given back",
        upstream=(
            "v1.36.2 keeps them for the rest of the search: a pod that fits is not placed "
            "(kubernetes#140436); v1.36.3 gives them back"
        ),
        here="given back, as in v1.36.3",
        why="a pod that fits should start",
    ),
    Deviation(
        subject="Counters of a shared device with a share that consumes no capacity",
        upstream=(
            "taken again for the next share, in another attempt (kubernetes#140433, fixed in 1.37)"
        ),
        here="taken once, by the first share",
        why="a pod that fits should start",
    ),
    Deviation(
        subject="Counters of partitionable devices, two drivers with a pool of one name",
        upstream=(
            "kept by the name of the pool alone: only those of the driver asked first are "
            "watched, and the other's devices can be given away twice over"
        ),
        here="kept by driver and pool",
        why="devices must not be promised that cannot be cut",
    ),
    Deviation(
        subject="Steps of consumable capacity: an amount between two thousandths, a negative step",
        upstream="1.37 ends the attempt with an error (kubernetes#141166)",
        here="such an amount is rounded up to the next step; a negative step counts as 1",
        why="a pod that fits should start",
    ),
    Deviation(
        subject="Claims that are given back (PostFilter, Unreserve)",
        upstream="are written while the attempt waits; where that fails, the pod goes to backoff",
        here="are written in the background; where that fails, the pod is tried again after 10 s",
        why="no decision waits for the API server",
    ),
    Deviation(
        subject="The special claim of a failed attempt (extended resources) is deleted",
        upstream="its pod, and pods that need its devices, wait for another event, or five minutes",
        here="the deletion queues them, as does that of any claim with devices",
        why="the room is there, and perhaps nothing else happens",
    ),
    Deviation(
        subject="A volume or a device that a failed binding gives back",
        upstream="pods that wait for it wait for another event, or five minutes",
        here="the failed binding queues them",
        why="it was held in the scheduler's memory alone, so perhaps nothing else happens",
    ),
    Deviation(
        subject="Members of a pod group that share a claim (groupMode permit)",
        upstream=(
            "are rejected while the allocation for the first of them is not written, which Permit "
            "delays until all have a node"
        ),
        here="count on this allocation",
        why="the group would never be complete",
    ),
    Deviation(
        subject="Pods that share a volume claim, and bind it at the same moment",
        upstream="all but the first fail in PreBind with a conflict, and are tried again",
        here="the first write counts for all",
        why="the room of the others went to other pods, and was evicted again",
    ),
    Deviation(
        subject="Members of a pod group that share a claim nobody has allocated yet",
        upstream="the second one to be bound fails: the claim is allocated elsewhere by then",
        here="it is bound: the claim has the devices that were decided on for both",
        why="the group would never be complete",
    ),
    Deviation(
        subject="Own claims next to an extended resource that the node's device plugin serves",
        upstream="makes a claim that asks for nothing, and then fails to bind the pod",
        here="makes no claim, and binds the pod",
        why="nothing is left to be allocated",
    ),
    Deviation(
        subject="The gate DRAFractionalCapacityRange of 1.37, `--min-compatibility-version` unset",
        upstream=(
            "off: the oldest version in the cluster counts as the one before the emulated version, "
            "and the gate's default is on from 1.37"
        ),
        here="on: the oldest version counts as the emulated one",
        why="a cluster of one version is the rule, and a range means what its driver wrote",
        back="`--min-compatibility-version 1.36`",
    ),
)
