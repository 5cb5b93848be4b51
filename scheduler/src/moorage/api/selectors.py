"""Selectors compiled for matching: labels of pods and namespaces, labels and names of nodes.

Types as written are in `moorage.api.meta`; here they become frozen, hashable values that can be
interned and asked. Everything public about selectors can be imported from this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from moorage.api.meta import (
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from moorage.api.requirement import (
    EVERYTHING,
    NOTHING,
    Operator,
    Requirement,
    Selector,
    make_requirement,
    make_selector,
    parse_int64,
)
from moorage.api.selector_text import (
    FieldRequirement,
    parse_field_selector,
    parse_label_selector,
)

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "FieldRequirement",
    "NodeMatcher",
    "NodeTermMatcher",
    "Operator",
    "Requirement",
    "Selector",
    "compile_label_selector",
    "compile_node_selector",
    "compile_node_selector_term",
    "equality_selector",
    "make_requirement",
    "make_selector",
    "parse_field_selector",
    "parse_int64",
    "parse_label_selector",
]

_LABEL_OPERATORS: Final = frozenset(
    {Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST}
)
_FIELD_OPERATORS: Final = frozenset({Operator.IN, Operator.NOT_IN})
_NODE_NAME: Final = "metadata.name"


def compile_label_selector(selector: LabelSelector | None) -> Selector:
    """Compile a label selector: None matches nothing, an empty one everything.

    Raises
    ------
    ValueError
        Unknown operator, bad key or bad values.
    """
    if selector is None:
        return NOTHING
    requirements = [
        make_requirement(key, Operator.IN, (text,)) for key, text in selector.match_labels.items()
    ]
    for expression in selector.match_expressions:
        op = _operator(expression.operator)
        if op not in _LABEL_OPERATORS:
            raise ValueError(f'"{expression.operator}" is not a valid label selector operator')
        requirements.append(make_requirement(expression.key, op, expression.values))
    return make_selector(requirements)


def equality_selector(labels: Mapping[str, str] | None) -> Selector:
    """Compile a map of wanted labels, unchecked; None and {} match everything.

    The form of ``nodeSelector`` and of the selectors of services and replication controllers.
    """
    if not labels:
        return EVERYTHING
    return make_selector(Requirement(key, Operator.IN, (text,)) for key, text in labels.items())


class NodeTermMatcher(msgspec.Struct, frozen=True, cache_hash=True):
    """One compiled term of a node selector."""

    labels: tuple[Requirement, ...] = ()
    """On the node's labels; all must hold."""
    fields: tuple[Requirement, ...] = ()
    """On the node's fields (``metadata.name``); all must hold."""
    error: str | None = None
    """The reason why the term cannot be understood; it matches nothing then."""

    def matches_node(self, labels: Mapping[str, str], name: str | None = None) -> bool:
        """Whether a node fulfils the term.

        Parameters
        ----------
        labels
            The node's labels.
        name
            The node's name. None where Kubernetes compares labels only (a volume's node
            affinity): well-formed conditions on fields are left out then.
        """
        if self.error is not None:
            return False
        if not all(requirement.matches(labels) for requirement in self.labels):
            return False
        if name is None or not self.fields:
            return True
        return all(_field_holds(requirement, name) for requirement in self.fields)


class NodeMatcher(msgspec.Struct, frozen=True, cache_hash=True):
    """A compiled node selector: one term must match; empty terms are left out."""

    terms: tuple[NodeTermMatcher, ...] = ()

    @property
    def error(self) -> str | None:
        """The first term that cannot be understood, or None."""
        return next((term.error for term in self.terms if term.error is not None), None)

    def matches_node(self, labels: Mapping[str, str], name: str | None = None) -> bool:
        """Whether a node fulfils any term; see `NodeTermMatcher.matches_node`."""
        return any(term.matches_node(labels, name) for term in self.terms)


def compile_node_selector(selector: NodeSelector | None) -> NodeMatcher:
    """Compile a node selector; None, or a selector without usable terms, matches no node.

    Never raises: a term in error matches nothing and carries its error, while other terms still
    count.

    Notes
    -----
    kubernetes v1.36 ``component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go``.
    """
    if selector is None:
        return NodeMatcher()
    terms = (compile_node_selector_term(term) for term in selector.node_selector_terms)
    return NodeMatcher(tuple(term for term in terms if term is not None))


def compile_node_selector_term(term: NodeSelectorTerm) -> NodeTermMatcher | None:
    """Compile one term; None if it is empty, which matches nothing and is dropped."""
    if not term.match_expressions and not term.match_fields:
        return None
    try:
        labels = tuple(sorted({_label_requirement(item) for item in term.match_expressions}))
        fields = tuple(sorted({_field_requirement(item) for item in term.match_fields}))
    except ValueError as error:
        return NodeTermMatcher(error=str(error))
    return NodeTermMatcher(labels, fields)


def _operator(text: str) -> Operator | None:
    try:
        return Operator(text)
    except ValueError:
        return None


def _label_requirement(item: NodeSelectorRequirement) -> Requirement:
    op = _operator(item.operator)
    if op is None:
        raise ValueError(f'"{item.operator}" is not a valid node selector operator')
    return make_requirement(item.key, op, item.values)


def _field_requirement(item: NodeSelectorRequirement) -> Requirement:
    op = _operator(item.operator)
    if op is None or op not in _FIELD_OPERATORS:
        raise ValueError(f'"{item.operator}" is not a valid field selector operator')
    if len(item.values) != 1:
        raise ValueError(f"{item.key}: conditions on node fields take exactly one value")
    return Requirement(item.key, op, tuple(item.values))


def _field_holds(requirement: Requirement, name: str) -> bool:
    # A field Kubernetes does not offer reads as the empty text.
    found = name if requirement.key == _NODE_NAME else ""
    return (found in requirement.values) == (requirement.op is Operator.IN)
