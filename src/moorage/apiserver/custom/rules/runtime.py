"""The CEL runtime: the only module of this server that imports it.

Place in the flow: `compiled` compiles rules here, `evaluation` runs them. The runtime is an
extra of the package (``moorage[dra]``) and is imported with the first rule.

The environment is that of kubernetes v1.36 ``apiserver/pkg/cel/environment`` as far as the runtime
supports it. A rule that needs one of the libraries in `_MISSING` gets an error of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from moorage.apiserver.custom.rules.checking import check_tree
from moorage.apiserver.custom.rules.forms import Form, cel_type
from moorage.apiserver.custom.rules.functions import rule_functions
from moorage.apiserver.custom.rules.tree import read_tree, write_tree

if TYPE_CHECKING:
    from cel_expr_python import cel

ITERATIONS_MAX: Final = 10_000
"""Most steps of all loops of one evaluation; the runtime has a fixed limit and stops there."""

HAS_OLD: Final = "__hasOldSelf"
"""The variable that says whether there is an old value, for rules with an optional old value."""

_OPTIONAL_OLD: Final = f"cel.bind(oldSelf, {HAS_OLD} ? optional.of(oldSelf) : optional.none(),\n"
_SCALARS: Final = ("BOOL", "BYTES", "DOUBLE", "DYN", "INT", "STRING")
_STATUS: Final = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_LINE: Final = re.compile(r"(?<=<input>:)[0-9]+(?=:)")
_UNKNOWN: Final = re.compile(
    r"(?:undeclared reference to|found no matching overload for) '([A-Za-z_0-9.]+)'"
)
_NO_SUCH_KEY: Final = re.compile(r"""Key not found in map : ["']?(.*?)["']?$""", re.S)
_INDEX: Final = re.compile(r"Index error: index=(-?[0-9]+) size=")
_TOO_DEEP: Final = re.compile(r"Exceeded max recursion depth|Expression recursion limit exceeded")
_MISSING: Final[Mapping[str, str]] = {
    name: library
    for library, names in {
        "lists": "lists indexOf lastIndexOf slice flatten distinct sort sortBy first last",
        "format": "format validate",
        "macros over two variables": "all exists exists_one existsOne transformList transformMap "
        "transformMapEntry",
    }.items()
    for name in names.split()
}


class Program(msgspec.Struct, frozen=True):
    """A compiled expression.

    Parameters
    ----------
    expression
        Expression of the runtime.
    uses_old
        The expression names ``oldSelf``.
    length
        Length of its text in characters.
    depth, slow_calls, list_calls, sums, products, reads_text
        As in `moorage.apiserver.custom.rules.checking.Checked`.
    """

    expression: Any
    uses_old: bool
    depth: int
    slow_calls: int
    list_calls: int
    sums: int
    products: int
    reads_text: bool
    length: int


class Refusal(msgspec.Struct, frozen=True):
    """The reason why an expression did not compile: an error, or what is ``missing`` here."""

    message: str
    missing: str = ""


class Failure(msgspec.Struct, frozen=True):
    """The reason why an evaluation has no result, in the words of cel-go."""

    message: str
    too_long: bool = False


_NO_OVERLOAD: Final = Failure("no such overload")


@cache
def is_installed() -> bool:
    """Whether the CEL runtime is installed."""
    try:
        _runtime()
    except ImportError:
        return False
    return True


def compile_text(text: str, form: Form, wanted: str, *, optional_old: bool) -> Program | Refusal:
    """Compile an expression over ``self`` and ``oldSelf``.

    Parameters
    ----------
    text
        The expression.
    form
        Form of both variables.
    wanted
        Type of the result that the rule needs, ``bool`` or ``string``.
    optional_old
        ``oldSelf`` is an optional value.
    """
    source = f"{_OPTIONAL_OLD}{text}\n)" if optional_old else text
    first_line = 1 if optional_old else 0
    try:
        compiled = _checking_environment(cel_type(form)).compile(source)
    except RuntimeError as error:
        return _refusal(_plain(str(error)), first_line)
    tree = read_tree(compiled.serialize())
    checked = check_tree(tree, source, {"self": form, "oldSelf": form}, first_line)
    if checked.faults:
        return Refusal("compilation failed: " + "\n".join(checked.faults))
    if checked.missing:
        return Refusal("", missing=checked.missing)
    result = compiled.return_type().name().lower()
    if result == "dyn" and checked.form is not None:
        result = cel_type(checked.form)
    if result not in (wanted, "dyn"):
        return Refusal(f"must evaluate to a {wanted}")
    return Program(
        expression=_environment().deserialize(write_tree(tree)),
        uses_old=checked.references > first_line,
        depth=checked.depth,
        slow_calls=checked.slow_calls,
        list_calls=checked.list_calls,
        sums=checked.sums,
        products=checked.products,
        reads_text=checked.reads_text,
        length=len(source),
    )


def _refusal(message: str, first_line: int) -> Refusal:
    missing = [_MISSING[name] for name in _UNKNOWN.findall(message) if name in _MISSING]
    if missing:
        return Refusal("", missing=missing[0])
    if _TOO_DEEP.search(message):
        # cel-go allows a depth of 250.
        return Refusal("", missing="room for an expression nested so deep")
    if first_line:
        message = _LINE.sub(lambda found: str(int(found[0]) - first_line), message)
    return Refusal(f"compilation failed: {message}")


def activation(values: Mapping[str, Any]) -> Any:
    """Return variables for any number of evaluations."""
    return _environment().Activation(values)


def evaluate(program: Program, variables: Any) -> Any:
    """Return the result of an expression, a bool or text; or a `Failure`.

    Parameters
    ----------
    program
        The expression.
    variables
        Made by `activation`.
    """
    try:
        answer = program.expression.eval(variables)
    except RuntimeError:
        # An evaluation without an answer has used up the steps of its loops.
        return Failure("operation cancelled: actual cost limit exceeded", too_long=True)
    try:
        value = answer.value()
    except TypeError:  # it is nothing Python knows, such as an optional value
        return _NO_OVERLOAD
    # Asking for the type takes as long as evaluating a typical rule.
    if value is True or value is False:
        return value
    if isinstance(value, str):
        is_error = answer.type() == _runtime().Type.ERROR
        return Failure(_words(value)) if is_error else value
    return _NO_OVERLOAD


def _words(text: str) -> str:
    missing = _NO_SUCH_KEY.search(text)
    if missing is not None:
        return f"no such key: {missing[1]}"
    index = _INDEX.search(text)
    if index is not None:
        return f"index out of bounds: {index[1]}"
    if "No matching overloads found" in text or "to non-message type" in text:
        return "no such overload"
    plain = _plain(text)
    return "division by zero" if plain == "divide by zero" else plain


def _plain(text: str) -> str:
    """Return a message of the runtime without its codes."""
    return _STATUS.sub("", text)


@lru_cache(maxsize=1024)
def _checking_environment(type_name: str) -> cel.Env:
    return _new_environment(_type(type_name))


def _type(name: str) -> cel.Type:
    """Return the type of a name made by `cel_type`; the runtime does not resolve nested names."""
    kinds = _runtime().Type
    if name.startswith("map("):
        return kinds.Map(kinds.STRING, _type(name.removeprefix("map(string, ")[:-1]))
    if name.startswith("list("):
        return kinds.List(_type(name.removeprefix("list(")[:-1]))
    return getattr(kinds, name.upper())


@cache
def _environment() -> cel.Env:
    """Return the environment of evaluations: types are already checked, timestamps are text."""
    return _new_environment(_runtime().Type.DYN)


def _new_environment(kind: cel.Type) -> cel.Env:
    runtime = _runtime()
    from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

    return runtime.NewEnv(
        variables={"self": kind, "oldSelf": kind, HAS_OLD: runtime.Type.BOOL},
        functions=_functions(),
        extensions=[
            ext_bindings.ExtBindings(),
            ext_optional.ExtOptional(),
            ext_strings.ExtStrings(),
        ],
    )


@cache
def _functions() -> list[cel.FunctionDecl]:
    runtime = _runtime()
    kinds = runtime.Type
    types = {
        "LIST": kinds.List(kinds.DYN),
        "TEXTS": kinds.List(kinds.STRING),
        "MAP": kinds.Map(kinds.STRING, kinds.List(kinds.STRING)),
    } | {name: getattr(kinds, name) for name in _SCALARS}
    overloads: dict[str, list[cel.Overload]] = {}
    for function in rule_functions():
        overloads.setdefault(function.name, []).append(
            runtime.Overload(
                id="_".join((function.name, *function.parameters)).lower(),
                parameters=[types[name] for name in function.parameters],
                return_type=types[function.returns],
                is_member=function.is_member,
                impl=function.implementation,
            )
        )
    return [runtime.FunctionDecl(name, items) for name, items in overloads.items()]


@cache
def _runtime() -> Any:
    from cel_expr_python import cel

    return cel
