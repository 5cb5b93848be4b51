"""Arguments of the in-tree plugins that no profile has unless its configuration enables them.

Continues `plugin_args`; `args` uses both modules. Mirrors scheduler-plugins ``apis/config`` of
2026-08 and the checks its plugins make when they are constructed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from moorage.config.plugin_args import (
    Args,
    ArgsKind,
    DefaultPreemptionArgs,
    validate_default_preemption_args,
)
from moorage.config.strict import invalid, unsupported

LEAST: Final = "Least"
MOST: Final = "Most"
_PERCENT: Final = 100


class WeighedResource(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """A resource whose allocatable amount scores, and what one unit of it is worth."""

    name: str = ""
    """As nodes offer it: ``cpu`` (in millicores), ``memory`` (in bytes), an extended resource."""
    weight: int = 0
    """The weight of a unit, more than 0; the default makes a millicore worth a mebibyte."""


_CPU_AND_MEMORY: Final = (
    WeighedResource(name="cpu", weight=1 << 20),
    WeighedResource(name="memory", weight=1),
)


class NodeResourcesAllocatableArgs(Args, frozen=True, kw_only=True):
    """Whether small or large nodes come first, and what makes a node large."""

    mode: str = LEAST
    """Least: nodes that offer little first; Most: nodes that offer much first."""
    resources: tuple[WeighedResource, ...] = _CPU_AND_MEMORY
    """The resources that are added up; empty means cpu and memory."""


class CoschedulingArgs(Args, frozen=True, kw_only=True):
    """Times for which members of a group wait for each other, and the treatment of failed groups.

    The settings are used with ``groupMode: permit`` only; in a trial no pod waits.
    """

    permit_waiting_time_seconds: int = 60
    """Time for which a member with a node is held for the others, unless its PodGroup says how
    long; 0 means 60."""
    pod_group_backoff_seconds: int = 0
    """Seconds in which no member is tried after its group was rejected; 0 for none."""
    pod_group_reject_percentage: int = 10
    """A group of which at most so many percent are missing is kept waiting when a member finds no
    node; of any other group all members are rejected. 0 to 100."""


class PreemptionTolerationArgs(DefaultPreemptionArgs, frozen=True, kw_only=True):
    """Least number of candidate nodes that preemption tries, as for DefaultPreemption."""

    min_candidate_nodes_percentage: int = 10
    """Percent of all nodes, 0 to 100; not 0 together with the other."""
    min_candidate_nodes_absolute: int = 100
    """Number of nodes; the greater of both counts, up to all nodes."""


def with_optional_defaults(args: Args) -> Args:
    """Return arguments with what a file may leave open filled in: resources, and the mode."""
    if not isinstance(args, NodeResourcesAllocatableArgs):
        return args
    return msgspec.structs.replace(
        args, mode=args.mode or LEAST, resources=args.resources or _CPU_AND_MEMORY
    )


def validate_node_resources_allocatable_args(
    args: NodeResourcesAllocatableArgs, path: str
) -> list[str]:
    """Return the faults of the arguments as field errors."""
    at = f"{path}." if path else ""
    faults = []
    if args.mode not in (LEAST, MOST):
        faults.append(unsupported(f"{at}mode", args.mode, (LEAST, MOST)))
    for index, resource in enumerate(args.resources):
        if resource.weight <= 0:
            rule = f"resource weight of {resource.name} should be a positive value"
            faults.append(invalid(f"{at}resources[{index}].weight", resource.weight, rule))
    return faults


def validate_coscheduling_args(args: CoschedulingArgs, path: str) -> list[str]:
    """Return the faults of the arguments as field errors."""
    at = f"{path}." if path else ""
    faults = [
        invalid(f"{at}{name}", seconds, "must be at least 0")
        for name, seconds in (
            ("permitWaitingTimeSeconds", args.permit_waiting_time_seconds),
            ("podGroupBackoffSeconds", args.pod_group_backoff_seconds),
        )
        if seconds < 0
    ]
    percent = args.pod_group_reject_percentage
    if not 0 <= percent <= _PERCENT:
        rule = "must be between 0 and 100"
        faults.append(invalid(f"{at}podGroupRejectPercentage", percent, rule))
    return faults


OPTIONAL_ARGS_KINDS: Final[Mapping[str, ArgsKind]] = {
    "NodeResourcesAllocatable": ArgsKind(
        NodeResourcesAllocatableArgs, validate_node_resources_allocatable_args
    ),
    "Coscheduling": ArgsKind(CoschedulingArgs, validate_coscheduling_args),
    "PreemptionToleration": ArgsKind(PreemptionTolerationArgs, validate_default_preemption_args),
}
"""By plugin name; other optional plugins take no arguments."""
