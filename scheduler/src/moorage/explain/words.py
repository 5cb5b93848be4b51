"""Words for amounts, taints and terms, as explanations and suggestions write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from moorage.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.names import CPU
from moorage.api.node import Taint
from moorage.api.pod import PodAffinityTerm, PodSpec
from moorage.api.quantity import NANO, from_nano, parse_quantity

_KIBI: Final = 1024
_BINARY: Final = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_MILLI_NANO: Final = NANO // 1000
_NAMED_MOST: Final = 3
UNITS_MOST: Final = 2**63 - 1
"""The greatest number of units; a request beyond it counts as this."""


def amount_text(resource: str, units: int) -> str:
    """Return an amount as a quantity: cpu from millicores, the rest from bytes or units."""
    nano = units * (_MILLI_NANO if resource == CPU else NANO)
    binary = resource == "memory" or "storage" in resource or resource.startswith("hugepages-")
    return from_nano(nano, binary=binary)


def rounded_text(resource: str, units: int) -> str:
    """Return an amount for people, rounded down: ``7.8Gi`` for 8064Mi."""
    text = amount_text(resource, units)
    if not text.endswith(_BINARY):
        binary = resource == "memory" or "storage" in resource
        if not binary or units < _KIBI:
            return text
    size, suffix = _KIBI, _BINARY[0]
    for suffix in _BINARY:  # noqa: B007 - the last one that fits
        if units < size * _KIBI:
            break
        size *= _KIBI
    whole, tenths = divmod(units * 10 // size, 10)
    return f"{whole}.{tenths}{suffix}" if tenths else f"{whole}{suffix}"


def request_text(resource: str, units: int, spec: PodSpec) -> str:
    """Return a request as a quantity.

    Parameters
    ----------
    resource, units
        As `amount_text` takes them. Units beyond 64 bits were cut off, as in kube-scheduler.
    spec
        The pod, which says the amount where it was cut off.
    """
    if units < UNITS_MOST:
        return amount_text(resource, units)
    nano = sum(
        parse_quantity(each.resources.requests.get(resource, "0")) for each in spec.containers
    )
    return from_nano(nano, binary=False) if nano > 0 else amount_text(resource, units)


def taint_text(taint: Taint) -> str:
    """Return a taint as kubectl writes it: ``key=value:effect``."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def expression_text(part: NodeSelectorRequirement) -> str:
    """Return one expression of a node affinity: ``disk In [ssd]``."""
    values = f" [{', '.join(part.values)}]" if part.values else ""
    return f"{part.key} {part.operator}{values}"


def term_text(term: NodeSelectorTerm) -> str:
    """Return a term of a node affinity in words: ``(disk In [ssd])``."""
    parts = map(expression_text, (*term.match_expressions, *term.match_fields))
    return f"({', '.join(parts) or 'an empty term, which no node matches'})"


def terms_text(selector: NodeSelector) -> str:
    """Return the terms of a node selector in words; a node has to match one of them."""
    return " or ".join(map(term_text, selector.node_selector_terms))


def pod_term_text(term: PodAffinityTerm) -> str:
    """Return a pod affinity term in words: ``app=web over zone``."""
    return f"{pod_selector_text(term)} over {term.topology_key}"


def pod_selector_text(term: PodAffinityTerm) -> str:
    """Return the selector of a pod affinity term in words: ``app=web, tier Exists``."""
    selector = term.label_selector
    if selector is None:
        return "no pod"  # as in Kubernetes: an absent selector matches nothing
    parts = [f"{key}={value}" for key, value in (selector.match_labels or {}).items()]
    for part in selector.match_expressions or ():
        values = f" [{', '.join(part.values)}]" if part.values else ""
        parts.append(f"{part.key} {part.operator}{values}")
    return ", ".join(parts) or "any pod"


def listed(items: Iterable[str]) -> str:
    """Return a list in words: the first three items, and how many more there are."""
    every = list(items)
    if len(every) <= _NAMED_MOST:
        return ", ".join(every)
    return f"{', '.join(every[:_NAMED_MOST])} and {len(every) - _NAMED_MOST} more"


def on_some(text: str, count: int, of: int) -> str:
    """Return a text that holds for some nodes of several, with their number where it is less."""
    return text if count >= of else f"{text} on {count} of them"


def joined(facts: Sequence[str]) -> str:
    """Return facts joined by "and", after a comma where a fact has one itself."""
    return (", and " if any("," in fact for fact in facts) else " and ").join(facts)
