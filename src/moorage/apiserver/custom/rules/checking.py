"""Type checks of rules that the runtime lacks: the fields of objects.

Place in the flow: `runtime` checks every compiled expression here. To the runtime an object is a
map. Here each selection is followed through the forms of the schema. A field that does not exist is
therefore reported when the definition is written, in the words of cel-go's checker.

A timestamp or duration of the object is text (`values`). Where a rule uses one, the tree is
changed: the call that parses the text is put around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from moorage.apiserver.custom.rules.addresses import TEXT_OF
from moorage.apiserver.custom.rules.forms import LISTS, MOMENTS, Form, cel_type
from moorage.apiserver.custom.rules.functions import CARRIED, LIST_FUNCTIONS, rule_functions
from moorage.apiserver.custom.rules.tree import (
    CALL,
    COMPREHENSION,
    ID,
    IDENT,
    LIST,
    SELECT,
    Message,
    children,
    positions,
    root,
    text_constant,
    text_field,
)

_EQUALITY: Final = ("_==_", "_!=_")
_READS_LISTS: Final = ("size", "_[_]")
_OF_TEXTS: Final = ("indexOf", "lastIndexOf", "reverse")
_ELSE: Final = ("orValue", "or")
_SLOW: Final = {"matches"} | {function.name for function in rule_functions()}


class Seen(NamedTuple):
    """The type of an expression: its form, and whether it is inside an optional value."""

    form: Form | None = None
    optional: bool = False


_NOTHING: Final = Seen()
_CARRIED: Final = Form("carried")
_NUMBERS: Final = {"int", "double"}
# Functions of cel-go ext/strings.go. Results of the first set may be as long as one text times
# another. Functions of the second set make a new text of one, or count its characters.
_PRODUCTS: Final = {"replace", "join"}
_TEXT_READERS: Final = {
    *("size", "split", "substring", "lowerAscii", "upperAscii", "trim", "reverse", "charAt"),
    *("indexOf", "lastIndexOf", "strings.quote", "string", "bytes", "base64.encode"),
}


class Checked(msgspec.Struct, frozen=True):
    """The result of checking an expression.

    Parameters
    ----------
    faults
        Errors of the expression, in the words of a compiler.
    references
        Number of uses of ``oldSelf``.
    depth
        Largest depth of nested loops.
    slow_calls
        Number of regular expression matches and of calls of `functions`; a call in a loop counts
        once.
    list_calls
        Number of these calls that go over a whole list.
    sums, products
        Number of concatenations of two texts or lists. Number of calls whose result can be as
        long as one text times another.
    reads_text
        A call reads the whole of a text.
    form
        Form of the result, as far as the schema declares it.
    changed
        Whether the tree has changed: it now parses timestamps or durations.
    missing
        Library that the expression needs and this server lacks; empty for none.
    """

    faults: tuple[str, ...]
    references: int
    depth: int
    slow_calls: int
    list_calls: int
    sums: int
    products: int
    reads_text: bool
    form: Form | None
    changed: bool
    missing: str


def check_tree(tree: Message, text: str, variables: Mapping[str, Form], first_line: int) -> Checked:
    """Follow an expression through the forms of its variables; changes the tree.

    Parameters
    ----------
    tree
        The compiled expression.
    text
        The compiled text, for the positions of errors.
    variables
        Forms of the variables that the expression may name.
    first_line
        Line where the author's text begins.
    """
    walk = _Walk(positions(tree))
    expression = root(tree)
    seen = walk.look(expression, {name: Seen(form) for name, form in variables.items()})
    return Checked(
        faults=tuple(_told(text, place, what, first_line) for place, what in walk.faults),
        references=walk.references,
        depth=_depth(expression),
        slow_calls=walk.slow_calls,
        list_calls=walk.list_calls,
        sums=walk.sums,
        products=walk.products,
        reads_text=walk.reads_text,
        form=None if seen.optional else seen.form,
        changed=walk.changed,
        missing=walk.missing,
    )


class _Walk:
    """One pass over a tree."""

    def __init__(self, places: Mapping[int, int]) -> None:
        self._places = places
        self._next_id = max(places, default=0) + 1
        # Types of expressions already visited, by their number.
        self._known: dict[int, Seen] = {}
        self.faults: list[tuple[int, str]] = []
        self.references = 0
        self.slow_calls = 0
        self.list_calls = 0
        self.sums = 0
        self.products = 0
        self.reads_text = False
        self.changed = False
        self.missing = ""

    def look(self, expression: Message, scope: Mapping[str, Seen]) -> Seen:
        """Return the type of an expression, and note the errors inside it."""
        if IDENT in expression:
            seen = self._ident(expression, scope)
        elif SELECT in expression:
            seen = self._select(expression, scope)
        elif CALL in expression:
            seen = self._call(expression, scope)
        elif COMPREHENSION in expression:
            seen = self._comprehension(expression, scope)
        else:
            for each in children(expression):
                self.look(each, scope)
            seen = _NOTHING
        if seen.form is not None and not seen.optional and seen.form.kind in MOMENTS:
            # Put the call that parses the text around it.
            self._make_call(expression, MOMENTS[seen.form.kind], dict(expression))
            seen = _NOTHING
        self._known[_number(expression)] = seen
        return seen

    def _make_call(self, expression: Message, function: str, operand: Message) -> None:
        """Turn an expression into a call of a function."""
        expression.clear()
        expression[ID] = [self._next_id]
        expression[CALL] = [{2: [function.encode()], 3: [operand]}]
        self._next_id += 1
        self.changed = True

    def _ident(self, expression: Message, scope: Mapping[str, Seen]) -> Seen:
        name = text_field(expression[IDENT][0], 1)
        self.references += name == "oldSelf"
        return scope.get(name, _NOTHING)

    def _select(self, expression: Message, scope: Mapping[str, Seen]) -> Seen:
        select = expression[SELECT][0]
        of = self.look(select[1][0], scope)
        found = self._member(of, text_field(select, 2), expression)
        # `has(x.y)` is a selection that is tested only.
        return _NOTHING if select.get(3) else found

    def _member(self, of: Seen, name: str, expression: Message) -> Seen:
        form = of.form
        if form is None or form.kind in ("any", "carried"):
            return _NOTHING
        if form.kind == "map":
            return Seen(form.element, of.optional)
        member = form.member(name) if form.kind == "object" else None
        if member is None:
            fault = f"undefined field '{name}'"
            if form.kind != "object":
                fault = f"type '{cel_type(form)}' does not support field selection"
            self.faults.append((self._places.get(_number(expression), 0), fault))
        return Seen(member, of.optional)

    def _call(self, expression: Message, scope: Mapping[str, Seen]) -> Seen:
        call = expression[CALL][0]
        function = text_field(call, 2)
        self.slow_calls += function in _SLOW
        self.list_calls += function in LIST_FUNCTIONS
        operands = [*call.get(1, ()), *call.get(3, ())]
        seen = [self.look(each, scope) for each in operands]
        kinds = {each.form.kind for each in seen if each.form is not None}
        self.sums += function == "_+_" and not kinds & _NUMBERS
        self.products += function in _PRODUCTS
        self.reads_text |= function in _TEXT_READERS or function in _SLOW
        self._check_operands(function, seen)
        if function in CARRIED:
            return Seen(_CARRIED)
        if function == "string" and seen[0].form == _CARRIED:
            self._make_call(expression, TEXT_OF, operands[0])
            return _NOTHING
        if function == "_?._":
            name = text_constant(operands[1])
            found = self._member(seen[0], name or "", expression)
            return found._replace(optional=True)
        if function in ("_[_]", "_[?_]"):
            form = seen[0].form
            return Seen(form and form.element, seen[0].optional or function == "_[?_]")
        if function == "_?_:_":
            return _either(seen[1], seen[2])
        if function in ("optional.of", "optional.ofNonZeroValue"):
            return seen[0]._replace(optional=True)
        if function in ("value", "orValue") and seen[0].optional:
            return seen[0]._replace(optional=False)
        return seen[0] if function == "or" else _NOTHING

    def _check_operands(self, function: str, seen: list[Seen]) -> None:
        """Note calls that the runtime resolves wrongly: lists that are sets, timestamps as text."""
        lists = [_holds_moments(each.form) for each in seen]
        read = function in _READS_LISTS or (function in _EQUALITY and all(lists))
        kind = seen[0].form.kind if seen and seen[0].form is not None else None
        if (any(lists) and not read) or (function in _ELSE and kind in MOMENTS):
            self.missing = "dates and durations in lists and optional values"
        elif function in _OF_TEXTS and kind in LISTS:
            self.missing = "lists"
        elif function == "_+_" and kind in ("set", "keyed"):
            self.missing = "sums of sets and keyed lists"

    def _comprehension(self, expression: Message, scope: Mapping[str, Seen]) -> Seen:
        loop = expression[COMPREHENSION][0]
        over = self.look(loop[2][0], scope).form
        begun = self.look(loop[4][0], scope)
        inside = dict(scope)
        inside[text_field(loop, 3)] = begun
        if not _is_binding(loop):
            inside[text_field(loop, 1)] = Seen(_iterated(over))
            self.look(loop[5][0], inside)
            self.look(loop[6][0], inside)
            grown = self._grown(loop[6][0])
            if grown is not None:
                inside[text_field(loop, 3)] = Seen(Form("list", element=grown))
        return self.look(loop[7][0], inside)

    def _grown(self, step: Message) -> Form | None:
        """Return the form of the elements that a loop appends to its list (filter, map)."""
        for _ in range(2):
            call = step.get(CALL, [{}])[0]
            function, operands = text_field(call, 2), call.get(3, ())
            if function == "_+_" and operands[1].get(LIST, [{}])[0].get(1):
                return self._known[_number(operands[1][LIST][0][1][0])].form
            if function != "_?_:_":
                return None
            step = operands[1]
        return None


def _number(expression: Message) -> int:
    number: int = expression.get(ID, [0])[0]
    return number


def _iterated(form: Form | None) -> Form | None:
    if form is not None and form.kind == "map":
        return Form("string")
    return form and form.element


def _holds_moments(form: Form | None) -> bool:
    return (
        form is not None
        and form.kind in LISTS
        and form.element is not None
        and form.element.kind in MOMENTS
    )


def _either(left: Seen, right: Seen) -> Seen:
    """Return the type of a conditional expression with two possible values."""
    if left == right:
        return left
    # The other value is `optional.none()`, or its type is unknown.
    if left.optional != right.optional:
        return left if left.optional else right
    return _NOTHING


def _depth(expression: Message) -> int:
    deepest = max((_depth(each) for each in children(expression)), default=0)
    is_loop = COMPREHENSION in expression and not _is_binding(expression[COMPREHENSION][0])
    return deepest + is_loop


def _is_binding(loop: Message) -> bool:
    """Whether a loop has an empty range, which is how `cel.bind` names a value."""
    over = loop[2][0]
    return LIST in over and not over[LIST][0]


def _told(text: str, place: int, what: str, first_line: int) -> str:
    before = text[:place]
    line = before.count("\n")
    column = place - (before.rfind("\n") + 1)
    shown = text.split("\n")[line]
    where = f"{line - first_line + 1}:{column + 1}"
    return f"ERROR: <input>:{where}: {what}\n | {shown}\n | {'.' * column}^"
