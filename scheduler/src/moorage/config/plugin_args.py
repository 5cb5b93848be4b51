"""Arguments of the in-tree plugins: ``kubescheduler.config.k8s.io/v1`` ``<Plugin>Args`` kinds.

`load` decodes a profile's ``pluginConfig`` into these; `framework` hands them to the plugins'
factories. A struct made without arguments, or passed through `with_defaults`, has the values of an
omitted configuration. The ``validate_*`` functions return faults in the words of Kubernetes' field
errors.

Mirrors kubernetes v1.36 ``pkg/scheduler/apis/config/v1/defaults.go`` and
``pkg/scheduler/apis/config/validation/validation_pluginargs.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from moorage.api.meta import NodeSelectorTerm
from moorage.api.names import qualified_name_faults
from moorage.api.pod import NodeAffinity, TopologySpreadConstraint
from moorage.api.schedules.durations import parse_duration
from moorage.api.selectors import compile_node_selector_term
from moorage.config.strict import unsupported

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"

_STRATEGIES: Final = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_DEFAULTING: Final = ("System", "List")


class Args(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of every kind of arguments; the type identifies the kind."""


class ResourceSpec(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """A resource that scores, and its share; weight 0 means 1."""

    name: str = ""
    """As pods request it: ``cpu``, ``memory``, ``ephemeral-storage``, an extended resource."""
    weight: int = 0
    """The resource's share next to the others', 1 to 100; 0 and unset mean 1."""


class UtilizationShapePoint(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """A corner of a broken line: score 0 to 10 at a utilization in percent."""

    utilization: int = 0
    """Percent of the node's allocatable amount that would be used, 0 to 100."""
    score: int = 0
    """The score at that utilization, 0 (worst) to 10 (best)."""


class RequestedToCapacityRatioParam(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """The broken line of the strategy of that name."""

    shape: tuple[UtilizationShapePoint, ...] = ()
    """Corners by rising utilization, at least one; flat before the first and after the last."""


_CPU_AND_MEMORY: Final = (
    ResourceSpec(name="cpu", weight=1),
    ResourceSpec(name="memory", weight=1),
)


class ScoringStrategy(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """The scoring of NodeResourcesFit; no resources means cpu and memory, weight 1 each."""

    type: str = ""
    """Needed. LeastAllocated: empty nodes first; MostAllocated: full nodes first;
    RequestedToCapacityRatio: by `requested_to_capacity_ratio`."""
    resources: tuple[ResourceSpec, ...] = _CPU_AND_MEMORY
    """The resources that score, by their weights; empty means cpu and memory, weight 1 each."""
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None
    """The broken line; needed by the strategy of that name, ignored by the others."""


_LEAST_ALLOCATED: Final = ScoringStrategy(type=LEAST_ALLOCATED)


class DefaultPreemptionArgs(Args, frozen=True, kw_only=True):
    """Least number of candidate nodes that preemption tries."""

    min_candidate_nodes_percentage: int = 10
    """Percent of all nodes, 0 to 100; not 0 together with the other."""
    min_candidate_nodes_absolute: int = 100
    """Number of nodes; the greater of both counts, up to all nodes."""


class DynamicResourcesArgs(Args, frozen=True, kw_only=True):
    """Timeouts of device allocation, as Go durations."""

    filter_timeout: str = "10s"
    """Time limit of allocating for one node in Filter; 0 means any time."""
    binding_timeout: str = "10m0s"
    """Time for which PreBind waits for devices to be ready; at least a second."""


class InterPodAffinityArgs(Args, frozen=True, kw_only=True):
    """Scoring of terms of existing pods."""

    hard_pod_affinity_weight: int = 1
    """Weight of existing pods' required affinity terms that select the pod, 0 to 100."""
    ignore_preferred_terms_of_existing_pods: bool = False
    """Whether preferred terms of existing pods do not score for a pod without preferred terms."""


class NodeAffinityArgs(Args, frozen=True, kw_only=True):
    """Affinity added to that of every pod of the profile."""

    added_affinity: NodeAffinity | None = None
    """Required and preferred node affinity, which must hold and scores next to the pod's own; unset
    adds nothing."""


class NodeResourcesBalancedAllocationArgs(Args, frozen=True, kw_only=True):
    """Resources whose use is balanced; weights must be 1."""

    resources: tuple[ResourceSpec, ...] = _CPU_AND_MEMORY
    """The resources to be used in proportion, each weight 1; empty means cpu and memory."""


class NodeResourcesFitArgs(Args, frozen=True, kw_only=True):
    """The resources that NodeResourcesFit leaves out, and how it scores."""

    ignored_resources: tuple[str, ...] = ()
    """Extended resources Filter does not look at, by full name such as ``example.com/gpu``."""
    ignored_resource_groups: tuple[str, ...] = ()
    """Extended resources Filter does not look at, by the name before ``/``: ``example.com``."""
    scoring_strategy: ScoringStrategy | None = _LEAST_ALLOCATED
    """Scoring of nodes; unset means LeastAllocated over cpu and memory."""


class PodTopologySpreadArgs(Args, frozen=True, kw_only=True):
    """Constraints for pods without constraints of their own."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    """Constraints without ``labelSelector``: it comes from the pod's services and owner. Only with
    `defaulting_type` List."""
    defaulting_type: str = "System"
    """System: kube-scheduler's own two soft constraints; List: `default_constraints`."""


DEFAULT_STORAGE_SHAPE: Final = (
    UtilizationShapePoint(utilization=0, score=10),
    UtilizationShapePoint(utilization=100, score=0),
)
"""Nodes with the most free storage are preferred (kubernetes v1.37, defaults.go)."""


class VolumeBindingArgs(Args, frozen=True, kw_only=True):
    """Time for which PreBind waits for volumes."""

    bind_timeout_seconds: int = 600
    """Seconds PreBind waits for the pod's volumes to be bound, 0 or more."""
    shape: tuple[UtilizationShapePoint, ...] | None = None
    """Scores by the share of a node's storage that is used; empty: the less, the better. Only with
    the feature gate StorageCapacityScoring."""


# -- defaults --------------------------------------------------------------------------------------


def with_defaults(args: Args) -> Args:
    """Return arguments with what a file may leave open filled in: resources and zero weights."""
    if isinstance(args, NodeResourcesFitArgs):
        strategy = args.scoring_strategy or _LEAST_ALLOCATED
        strategy = msgspec.structs.replace(strategy, resources=_weighted(strategy.resources))
        return msgspec.structs.replace(args, scoring_strategy=strategy)
    if isinstance(args, NodeResourcesBalancedAllocationArgs):
        return msgspec.structs.replace(args, resources=_weighted(args.resources))
    if isinstance(args, PodTopologySpreadArgs) and not args.defaulting_type:
        return msgspec.structs.replace(args, defaulting_type="System")
    return args


def _weighted(resources: Sequence[ResourceSpec]) -> tuple[ResourceSpec, ...]:
    if not resources:
        return _CPU_AND_MEMORY
    return tuple(ResourceSpec(name=spec.name, weight=spec.weight or 1) for spec in resources)


# -- validation ------------------------------------------------------------------------------------


def validate_default_preemption_args(args: DefaultPreemptionArgs, path: str) -> list[str]:
    """Return the faults of the arguments as field errors."""
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    percentage_path = _child(path, "minCandidateNodesPercentage")
    absolute_path = _child(path, "minCandidateNodesAbsolute")
    faults = []
    if not 0 <= percentage <= 100:
        faults.append(_invalid(percentage_path, percentage, "not in valid range [0, 100]"))
    if absolute < 0:
        faults.append(_invalid(absolute_path, absolute, "not in valid range [0, inf)"))
    if percentage == 0 and absolute == 0:
        both = "cannot be zero at the same time as "
        faults.append(_invalid(percentage_path, 0, both + "minCandidateNodesAbsolute"))
        faults.append(_invalid(absolute_path, 0, both + "minCandidateNodesPercentage"))
    return faults


def validate_dynamic_resources_args(args: DynamicResourcesArgs, path: str) -> list[str]:
    """Return the faults of the arguments as field errors."""
    faults = []
    for field, text, least_ns, rule in (
        ("filterTimeout", args.filter_timeout, 0, "must be zero or positive"),
        ("bindingTimeout", args.binding_timeout, 1_000_000_000, "must be at least 1 second"),
    ):
        try:
            if parse_duration(text) < least_ns:
                faults.append(_invalid(_child(path, field), text, rule))
        except ValueError as fault:
            faults.append(_invalid(_child(path, field), text, str(fault)))
    return faults


def validate_inter_pod_affinity_args(args: InterPodAffinityArgs, path: str) -> list[str]:
    """Return the faults of the arguments as field errors."""
    weight = args.hard_pod_affinity_weight
    if 0 <= weight <= 100:
        return []
    return [_invalid(_child(path, "hardPodAffinityWeight"), weight, "not in valid range [0, 100]")]


def validate_node_affinity_args(args: NodeAffinityArgs, path: str) -> list[str]:
    """Return the faults of the arguments as field errors."""
    affinity = args.added_affinity
    if affinity is None:
        return []
    faults = []
    required = affinity.required_during_scheduling_ignored_during_execution
    if required is not None:
        where = _child(path, "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution")
        for index, term in enumerate(required.node_selector_terms):
            faults += _term_faults(term, f"{where}.nodeSelectorTerms[{index}]")
    where = _child(path, "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution")
    wishes = affinity.preferred_during_scheduling_ignored_during_execution or []
    for index, wish in enumerate(wishes):
        if wish.weight:
            faults += _term_faults(wish.preference, f"{where}[{index}]")
    return faults


def validate_node_resources_balanced_allocation_args(
    args: NodeResourcesBalancedAllocationArgs, path: str
) -> list[str]:
    """Return the faults of the arguments as field errors."""
    faults = []
    names: set[str] = set()
    for index, spec in enumerate(args.resources):
        where = _child(path, f"resources[{index}]")
        if spec.name in names:
            faults.append(f'{where}.name: Duplicate value: "{spec.name}"')
        names.add(spec.name)
        if spec.weight != 1:
            faults.append(_invalid(f"{where}.weight", spec.weight, "must be 1"))
    return faults


def validate_node_resources_fit_args(args: NodeResourcesFitArgs, path: str) -> list[str]:
    """Return the faults of the arguments as field errors."""
    faults = []
    for index, name in enumerate(args.ignored_resources):
        faults += _label_name_faults(name, _child(path, f"ignoredResources[{index}]"))
    for index, group in enumerate(args.ignored_resource_groups):
        where = _child(path, f"ignoredResourceGroups[{index}]")
        if "/" in group:
            faults.append(_invalid(where, group, "resource group name can't contain '/'"))
        faults += _label_name_faults(group, where)
    where = _child(path, "scoringStrategy")
    if args.scoring_strategy is None:
        return [*faults, f"{where}: Required value: ScoringStrategy field is required"]
    return faults + _strategy_faults(args.scoring_strategy, where)


def validate_pod_topology_spread_args(args: PodTopologySpreadArgs, path: str) -> list[str]:
    """Return the faults of the arguments as field errors."""
    faults = []
    kind, kind_path = args.defaulting_type, _child(path, "defaultingType")
    if kind not in _DEFAULTING:
        faults.append(unsupported(kind_path, kind, _DEFAULTING))
    elif kind == "System" and args.default_constraints:
        faults.append(_invalid(kind_path, kind, "when .defaultConstraints are not empty"))
    pairs: set[tuple[str, str]] = set()
    for index, constraint in enumerate(args.default_constraints):
        where = _child(path, f"defaultConstraints[{index}]")
        faults += _constraint_faults(constraint, where)
        key = (constraint.topology_key, constraint.when_unsatisfiable)
        if key in pairs:
            faults.append(f'{where}: Duplicate value: "{{{key[0]}, {key[1]}}}"')
        pairs.add(key)
    return faults


def validate_volume_binding_args(args: VolumeBindingArgs, path: str) -> list[str]:
    """Return the faults of the arguments as field errors."""
    faults = []
    seconds = args.bind_timeout_seconds
    if seconds < 0:
        rule = "invalid BindTimeoutSeconds, should not be a negative value"
        faults.append(_invalid(_child(path, "bindTimeoutSeconds"), seconds, rule))
    if args.shape:
        faults += _shape_faults(args.shape, _child(path, "shape"))
    return faults


def unexpected_shape(shape: Sequence[UtilizationShapePoint], path: str) -> list[str]:
    """Return the fault of a shape that is given although its feature gate is off."""
    points = ", ".join(f"{point.utilization}: {point.score}" for point in shape)
    rule = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
    return [f"{path}: Invalid value: [{points}]: {rule}"]


def _term_faults(term: NodeSelectorTerm, path: str) -> list[str]:
    """Return the faults of the requirements of a term, each with the field that is wrong."""
    alone = [
        (f"{path}.matchExpressions[{index}]", NodeSelectorTerm(match_expressions=[item]))
        for index, item in enumerate(term.match_expressions)
    ] + [
        (f"{path}.matchFields[{index}]", NodeSelectorTerm(match_fields=[item]))
        for index, item in enumerate(term.match_fields)
    ]
    matchers = ((where, compile_node_selector_term(each)) for where, each in alone)
    return [
        _requirement_fault(where, matcher.error)
        for where, matcher in matchers
        if matcher is not None and matcher.error is not None
    ]


def _requirement_fault(path: str, error: str) -> str:
    """Return the fault of a requirement; the text of some errors begins with the field."""
    if error.startswith(("key: ", "values")):
        return f"{path}.{error}"
    field = "operator" if error.endswith("operator") else "values"
    return f"{path}.{field}: Invalid value: {error}"


def _strategy_faults(strategy: ScoringStrategy, path: str) -> list[str]:
    faults = []
    if strategy.type not in _STRATEGIES:
        faults.append(unsupported(f"{path}.type", strategy.type, _STRATEGIES))
    for index, spec in enumerate(strategy.resources):
        if not 0 < spec.weight <= 100:
            rule = f"resource weight of {spec.name} not in valid range (0, 100]"
            faults.append(_invalid(f"{path}.resources[{index}].weight", spec.weight, rule))
    ratio, where = strategy.requested_to_capacity_ratio, f"{path}.requestedToCapacityRatio"
    if strategy.type == REQUESTED_TO_CAPACITY_RATIO:
        if ratio is None:
            rule = "must be specified when type is RequestedToCapacityRatio"
            faults.append(f"{where}: Required value: {rule}")
        else:
            faults += _shape_faults(ratio.shape, f"{where}.shape")
    elif ratio is not None:
        rule = "must be nil when type is not RequestedToCapacityRatio"
        faults.append(f"{where}: Forbidden: {rule}")
    return faults


def _shape_faults(shape: Sequence[UtilizationShapePoint], path: str) -> list[str]:
    if not shape:
        return [f"{path}: Required value: at least one point must be specified"]
    faults = []
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            rule = "values must be sorted in increasing order"
            at = f"{path}[{index}].utilization"
            faults.append(_invalid(at, shape[index].utilization, rule))
            break
    for index, point in enumerate(shape):
        for field, value, most in (
            ("utilization", point.utilization, 100),
            ("score", point.score, 10),
        ):
            if not 0 <= value <= most:
                rule = f"not in valid range [0, {most}]"
                faults.append(_invalid(f"{path}[{index}].{field}", value, rule))
    return faults


def _constraint_faults(constraint: TopologySpreadConstraint, path: str) -> list[str]:
    faults = []
    if constraint.max_skew <= 0:
        rule = "not in valid range (0, inf)"
        faults.append(_invalid(f"{path}.maxSkew", constraint.max_skew, rule))
    if not constraint.topology_key:
        faults.append(f"{path}.topologyKey: Required value: can not be empty")
    else:
        faults += _label_name_faults(constraint.topology_key, f"{path}.topologyKey")
    action = constraint.when_unsatisfiable
    if not action:
        faults.append(f"{path}.whenUnsatisfiable: Required value: can not be empty")
    elif action not in _UNSATISFIABLE:
        faults.append(unsupported(f"{path}.whenUnsatisfiable", action, _UNSATISFIABLE))
    if constraint.label_selector is not None:
        rule = "constraint must not define a selector, as they deduced for each pod"
        faults.append(f"{path}.labelSelector: Forbidden: {rule}")
    return faults


def _label_name_faults(name: str, path: str) -> list[str]:
    return [_invalid(path, name, fault) for fault in qualified_name_faults(name)]


def _child(path: str, field: str) -> str:
    return f"{path}.{field}" if path else field


def _invalid(path: str, value: str | int, rule: str) -> str:
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return f"{path}: Invalid value: {shown}: {rule}"


# -- kinds -----------------------------------------------------------------------------------------


class ArgsKind(msgspec.Struct, frozen=True):
    """A kind of arguments: its type, and the function that finds its faults.

    Parameters
    ----------
    type
        Subclass of `Args`.
    validate
        (arguments, path) to faults.
    example
        Arguments as in a file; needed where a field has no default.
    """

    type: type[Args]
    validate: Callable[[Any, str], list[str]]
    example: Mapping[str, Any] = {}


ARGS_KINDS: Final[Mapping[str, ArgsKind]] = {
    "DefaultPreemption": ArgsKind(DefaultPreemptionArgs, validate_default_preemption_args),
    "DynamicResources": ArgsKind(DynamicResourcesArgs, validate_dynamic_resources_args),
    "InterPodAffinity": ArgsKind(InterPodAffinityArgs, validate_inter_pod_affinity_args),
    "NodeAffinity": ArgsKind(NodeAffinityArgs, validate_node_affinity_args),
    "NodeResourcesBalancedAllocation": ArgsKind(
        NodeResourcesBalancedAllocationArgs, validate_node_resources_balanced_allocation_args
    ),
    "NodeResourcesFit": ArgsKind(NodeResourcesFitArgs, validate_node_resources_fit_args),
    "PodTopologySpread": ArgsKind(PodTopologySpreadArgs, validate_pod_topology_spread_args),
    "VolumeBinding": ArgsKind(VolumeBindingArgs, validate_volume_binding_args),
}
"""By plugin name; other in-tree plugins take no arguments. A kind is called ``<plugin>Args``."""
