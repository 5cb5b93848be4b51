"""Node selectors evaluated over all rows at once, on the label columns.

Input is a compiled selector of `api`. Each requirement is evaluated once for each distinct label
value and then gathered over the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Node
from moorage.api.selectors import (
    NodeMatcher,
    NodeTermMatcher,
    Operator,
    Requirement,
    compile_node_selector,
    equality_selector,
    parse_int64,
)
from moorage.snapshot.labels import LabelColumn
from moorage.snapshot.shape import NodeAffinitySpec
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

BoolArray = NDArray[np.bool_]

_NODE_NAME = "metadata.name"


class LabelQuestion:
    """One label requirement with its answers by value id.

    Parameters
    ----------
    requirement
        The checked and compiled requirement.
    """

    __slots__ = ("_column", "_requirement", "_snapshot", "_table")

    def __init__(self, requirement: Requirement) -> None:
        self._requirement = requirement
        self._snapshot: Snapshot | None = None
        self._column: LabelColumn | None = None
        self._table = np.zeros(0, np.bool_)

    def holds(self, snapshot: Snapshot, view: NodeView) -> BoolArray:
        """Return bool, (rows of the view,): whether each node fulfils the requirement."""
        column = self._column
        if column is None or snapshot is not self._snapshot:
            column = self._column = snapshot.label_column(self._requirement.key)
            self._snapshot = snapshot
            self._table = self._answers(column)
        elif column.size + 1 != len(self._table):
            self._table = self._answers(column)
        # The last entry is the answer for an absent label, whose id is -1.
        return self._table[view.take_rows(column.ids)]

    def _answers(self, column: LabelColumn) -> BoolArray:
        op, values = self._requirement.op, self._requirement.values
        table = np.zeros(column.size + 1, np.bool_)
        if op in {Operator.IN, Operator.NOT_IN}:
            ids = [column.lookup(value) for value in values]
            table[[value_id for value_id in ids if value_id >= 0]] = True
            return ~table if op is Operator.NOT_IN else table
        if op in {Operator.EXISTS, Operator.DOES_NOT_EXIST}:
            table[:-1] = True
            return ~table if op is Operator.DOES_NOT_EXIST else table
        bound = parse_int64(values[0])
        if bound is not None:
            number, valid = column.ints()
            table[:-1] = valid & (number > bound if op is Operator.GT else number < bound)
        return table


class TermQuestion:
    """Label requirements and conditions on the node's name that must all hold.

    Parameters
    ----------
    labels
        Requirements on labels.
    fields
        Conditions on fields, with exactly one value each; only ``metadata.name`` has one.
    """

    __slots__ = ("_fields", "_labels")

    def __init__(self, labels: Sequence[Requirement], fields: Sequence[Requirement] = ()) -> None:
        self._labels = [LabelQuestion(requirement) for requirement in labels]
        self._fields = tuple(fields)

    def holds(self, snapshot: Snapshot, view: NodeView) -> BoolArray | None:
        """Return bool, (rows of the view,); None for an empty term, which holds on all rows."""
        result: BoolArray | None = None
        for question in self._labels:
            answer = question.holds(snapshot, view)
            result = answer if result is None else result & answer
        for field in self._fields:
            answer = _field_holds(field, snapshot, view)
            result = answer if result is None else result & answer
        return result


class SelectorQuestion:
    """Terms of a selector, one of which must hold. Without a valid term no node matches.

    Parameters
    ----------
    matcher
        The compiled node selector.
    """

    __slots__ = ("_terms",)

    def __init__(self, matcher: NodeMatcher) -> None:
        self._terms = [term_question(term) for term in matcher.terms if term.error is None]

    def holds(self, snapshot: Snapshot, view: NodeView) -> BoolArray:
        """Return bool, (rows of the view,): whether each node fulfils any term."""
        result: BoolArray | None = None
        for term in self._terms:
            answer = term.holds(snapshot, view)
            if answer is None:
                return np.ones(len(view), np.bool_)
            result = answer if result is None else result | answer
        return np.zeros(len(view), np.bool_) if result is None else result


class RequiredNodes:
    """The ``nodeSelector`` and the required node affinity of a pod.

    Parameters
    ----------
    spec
        The pod's `NODE_AFFINITY` part.
    """

    __slots__ = ("_affinity", "_selector")

    def __init__(self, spec: NodeAffinitySpec) -> None:
        self._selector = TermQuestion(equality_selector(spec.node_selector).requirements)
        self._affinity: SelectorQuestion | None = None
        if spec.required is not None:
            self._affinity = SelectorQuestion(compile_node_selector(spec.required))

    def hold(self, snapshot: Snapshot, view: NodeView) -> BoolArray | None:
        """Return bool, (rows of the view,); None when every node matches."""
        selected = self._selector.holds(snapshot, view)
        if self._affinity is None:
            return selected
        affine = self._affinity.holds(snapshot, view)
        return affine if selected is None else selected & affine


def term_question(term: NodeTermMatcher) -> TermQuestion:
    """Return the vector form of one compiled term, which must not be in error."""
    assert term.error is None, term.error
    return TermQuestion(term.labels, term.fields)


def _field_holds(field: Requirement, snapshot: Snapshot, view: NodeView) -> BoolArray:
    wanted_in = field.op is Operator.IN
    if field.key != _NODE_NAME:
        # A field that does not exist has the value "".
        return np.full(len(view), ("" in field.values) == wanted_in)
    found = np.zeros(len(view), np.bool_)
    row = snapshot.row_of(field.values[0])
    if row is not None:
        found = view.row_numbers() == row
    return found if wanted_in else ~found


def matches_node(spec: NodeAffinitySpec, node: Node) -> bool:
    """Whether a node fulfils a pod's node selector and required affinity; for one node only."""
    labels = node.metadata.labels
    if not equality_selector(spec.node_selector).matches(labels):
        return False
    return spec.required is None or compile_node_selector(spec.required).matches_node(
        labels, node.name
    )
