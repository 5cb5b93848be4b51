"""An allocation as the API writes it: devices, settings for their drivers, and nodes.

Rules mirrored: kubernetes v1.36 ``structured/internal/incubating/allocator_incubating.go``, the end
of ``Allocate`` and ``createNodeSelector``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moorage.api.devices import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from moorage.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.base.ids import new_uid
from moorage.base.rng import Random
from moorage.plugins.claims.devices.capacity import consumption
from moorage.plugins.claims.devices.contract import AllocationError
from moorage.plugins.claims.devices.pools import NodeView
from moorage.plugins.claims.devices.requests import Alternative, Demand
from moorage.plugins.claims.devices.search import Pick, Solution


def build_results(
    view: NodeView, node_name: str, demands: Sequence[Demand], solution: Solution, rng: Random
) -> list[AllocationResult]:
    """Return the allocation of each claim.

    Raises
    ------
    AllocationError
        A slice has a node selector that cannot be expressed in the claim's.
    """
    results = []
    for demand, picks, chosen in zip(demands, solution.picks, solution.chosen, strict=True):
        alternatives = [
            request[index or 0] for request, index in zip(demand.requests, chosen, strict=True)
        ]
        results.append(
            AllocationResult(
                devices=DeviceAllocationResult(
                    results=[_device(view, pick, rng) for pick in picks],
                    config=_configuration(demand, alternatives),
                ),
                node_selector=_node_selector(view, picks, node_name, demand),
            )
        )
    return results


def _device(view: NodeView, pick: Pick, rng: Random) -> DeviceRequestAllocationResult:
    offered, request = view.devices[pick.position].offered, pick.alternative
    consumed = consumption(offered.capacity, request.capacity) if offered.shareable else None
    return DeviceRequestAllocationResult(
        request=request.full_name,
        driver=offered.id.driver,
        pool=offered.id.pool,
        device=offered.id.device,
        admin_access=True if request.admin_access else None,
        tolerations=list(request.tolerations),
        binding_conditions=offered.device.binding_conditions,
        binding_failure_conditions=offered.device.binding_failure_conditions,
        share_id=new_uid(rng) if offered.shareable else None,
        consumed_capacity={name: amount.text for name, amount in (consumed or {}).items()},
    )


def _configuration(
    demand: Demand, alternatives: Sequence[Alternative]
) -> list[DeviceAllocationConfiguration]:
    """Return the settings of the classes, each class once, then the settings of the claim."""
    requests_of_class: dict[str, list[str]] = {}
    classes = {}
    for alternative in alternatives:
        name = alternative.device_class.name
        classes[name] = alternative.device_class
        requests_of_class.setdefault(name, []).append(alternative.full_name)
    configs = [
        DeviceAllocationConfiguration(
            source="FromClass", requests=requests_of_class[name], opaque=config.opaque
        )
        for name, device_class in classes.items()
        for config in device_class.spec.config
    ]
    for config in demand.claim.spec.devices.config:
        # Once for each named request, as in the reference.
        times = 1 if not config.requests else _requests_named_in(alternatives, config.requests)
        configs += [
            DeviceAllocationConfiguration(
                source="FromClaim", requests=config.requests, opaque=config.opaque
            )
        ] * times
    # No requests means all of them.
    everything = len(demand.requests)
    return [
        DeviceAllocationConfiguration(source=config.source, opaque=config.opaque)
        if len(config.requests) == everything
        else config
        for config in configs
    ]


def _requests_named_in(alternatives: Sequence[Alternative], names: Sequence[str]) -> int:
    return sum(asked.request in names or asked.full_name in names for asked in alternatives)


def _node_selector(
    view: NodeView, picks: Iterable[Pick], node_name: str, demand: Demand
) -> NodeSelector | None:
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for pick in picks:
        offered = view.devices[pick.position].offered
        spec = offered.slice_.api.spec
        place = offered.device if spec.per_device_node_selection else spec
        if place.node_name or offered.device.binds_to_node:
            name = NodeSelectorRequirement(key="metadata.name", operator="In", values=[node_name])
            return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[name])])
        terms = [] if place.node_selector is None else place.node_selector.node_selector_terms
        if len(terms) > 1:
            raise AllocationError(
                f"create NodeSelector for claim {demand.claim.name}: "
                f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            )
        for term in terms:
            _add_new(fields, term.match_fields)
            _add_new(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=fields, match_expressions=expressions)
    return NodeSelector(node_selector_terms=[term])


def _add_new(
    known: list[NodeSelectorRequirement], requirements: Iterable[NodeSelectorRequirement]
) -> None:
    for requirement in requirements:
        if not any(_is_same(requirement, other) for other in known):
            known.append(requirement)


def _is_same(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    return (one.key, one.operator, set(one.values)) == (
        other.key,
        other.operator,
        set(other.values),
    )
