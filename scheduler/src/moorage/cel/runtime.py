"""The CEL runtime, for rules of custom resources, admission policies and checks of selectors.

Place in the flow: `moorage_sandbox.rules` compiles and evaluates rules here. The runtime
is an extra of the package (``moorage[dra]``) and is imported with the first rule.

The environment is that of kubernetes v1.36 ``apiserver/pkg/cel/environment`` as far as the runtime
supports it. ``self`` and ``oldSelf`` have no declared type: the runtime has none for objects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from moorage.cel.authorizer import authorizer_functions
from moorage.cel.expression_costs import Costs
from moorage.cel.functions import CelFunction
from moorage.cel.rule_functions import rule_functions
from moorage.cel.rule_text import Reading, read_rule
from moorage.cel.selector_cost import has_many_macros

if TYPE_CHECKING:
    from cel_expr_python import cel

RULE_NAMES: Final = ("self", "oldSelf")
"""The variables of rules."""

HAS_OLD: Final = "__hasOldSelf"
"""The variable that says whether there is an old value, for rules with an optional old value."""

_OPTIONAL_OLD: Final = (
    f"cel.bind(oldSelf, {HAS_OLD} ? optional.of(oldSelf) : optional.none(), %s\n)"
)
_STATUS: Final = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_UNKNOWN: Final = re.compile(
    r"(?:undeclared reference to|found no matching overload for) '([A-Za-z_0-9.]+)'"
)
_IN_STRUCT: Final = re.compile(r" not found in struct '\w+'")
_ERROR: Final = re.compile(r"\n(?=ERROR: )")
# Errors that cel-go does not report: what follows from an error, and numbers of two types, which
# Kubernetes lets be compared.
_NO_ERROR: Final = re.compile(
    r"expression of type '\*error\*'"
    r"|overload for '_[<>]=?_' applied to '\((?:double|int|uint), (?:double|int|uint)\)'"
)
_TOO_DEEP: Final = re.compile(r"Exceeded max recursion depth|Expression recursion limit exceeded")


class Program(msgspec.Struct, frozen=True):
    """A compiled expression: that of the runtime, its text, and whether it names ``oldSelf``."""

    expression: Any
    reading: Reading
    uses_old: bool
    costs: Costs


class Refusal(msgspec.Struct, frozen=True):
    """The reason why an expression did not compile: an error, or the ``missing`` function."""

    message: str
    missing: str = ""


class Failure(msgspec.Struct, frozen=True):
    """The reason why an evaluation has no result."""

    message: str
    too_long: bool = False


_NO_OVERLOAD: Final = Failure("no such overload")
OVER_BUDGET: Final = Failure("operation cancelled: actual cost limit exceeded", too_long=True)
"""The failure of an expression that costs too much, or makes too many steps in loops."""


@cache
def is_installed() -> bool:
    """Whether the CEL runtime is installed."""
    try:
        _runtime()
    except ImportError:
        return False
    return True


def compile_text(text: str, wanted: str, *, optional_old: bool) -> Program | Refusal:
    """Compile an expression over ``self`` and ``oldSelf``.

    Parameters
    ----------
    text
        The expression.
    wanted
        Type of the result that the rule needs, ``bool`` or ``string``.
    optional_old
        ``oldSelf`` is an optional value.
    """
    program = compile_over(text, wanted, RULE_NAMES)
    if isinstance(program, Refusal):
        return program
    if optional_old:
        program = compile_over(_OPTIONAL_OLD % text, wanted, RULE_NAMES)
        if isinstance(program, Refusal):
            return program
    uses_old = isinstance(compile_over(text, wanted, RULE_NAMES[:1]), Refusal)
    return Program(program.expression, read_rule(text), uses_old, program.costs)


def compile_over(text: str, wanted: str, names: tuple[str, ...]) -> Program | Refusal:
    """Compile an expression over variables of any type; ``wanted`` is the type of its result."""
    if has_many_macros(text):
        return Refusal("", missing="room for so many macros of optional values")
    try:
        expression = _environment(names).compile(text)
    except RuntimeError as error:
        return _refusal(text, plain_message(str(error)))
    if expression.return_type().name().lower().partition("<")[0] not in (wanted, "dyn"):
        return Refusal(f"must evaluate to a {wanted}")
    return Program(expression, read_rule(text), uses_old=False, costs=Costs(expression, names))


def type_fault(environment: cel.Env, text: str) -> str:
    """Return the reason why an expression does not fit the types of variables; empty if it does."""
    found = check_types(environment, text)
    if isinstance(found, str) or _refusal(text, "\n".join(found)).missing:
        return ""
    return "\n".join(found)


def check_types(environment: cel.Env, text: str) -> str | list[str]:
    """Return the name of an expression's type, or the errors that keep it from compiling.

    Errors that follow from others, and those that cel-go does not report, are left out.
    """
    try:
        return str(environment.compile(text).return_type().name().lower())
    except RuntimeError as error:
        message = _IN_STRUCT.sub("", plain_message(str(error)))
        return [each for each in _ERROR.split(message) if not _NO_ERROR.search(each)]


def unknown_functions(error: str) -> list[str]:
    """Return the functions that an error says are missing, or not for these arguments."""
    return _UNKNOWN.findall(error)


def _refusal(text: str, message: str) -> Refusal:
    for name in _UNKNOWN.findall(message):
        if re.search(rf"\b{re.escape(name)}\s*\(", text):
            return Refusal("", missing=f"function {name} with these arguments")
    if _TOO_DEEP.search(message):
        # cel-go allows a depth of 250.
        return Refusal("", missing="room for an expression nested so deep")
    return Refusal(f"compilation failed: {message}")


def activation(values: Mapping[str, Any], names: tuple[str, ...] = RULE_NAMES) -> Any:
    """Return variables for any number of evaluations of expressions over these names."""
    return _environment(names).Activation(values)


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
        return OVER_BUDGET
    try:
        value = answer.value()
    except TypeError:  # it is nothing Python knows, such as an optional value
        return _NO_OVERLOAD
    # Asking for the type takes as long as evaluating a typical rule.
    if value is True or value is False:
        return value
    if isinstance(value, str):
        is_error = answer.type() == _runtime().Type.ERROR
        return Failure(plain_message(value)) if is_error else value
    return _NO_OVERLOAD


def evaluate_json(program: Program, variables: Any) -> Any:
    """Return the result of an expression, a map or a list, as decoded JSON; or a `Failure`."""
    try:
        answer = program.expression.eval(variables)
        return _json_of(answer)
    except RuntimeError:
        return OVER_BUDGET
    except TypeError as error:
        return Failure(str(error))


def _json_of(value: Any) -> Any:
    """Return a value, decoded or of the runtime, as decoded JSON."""
    kinds = _runtime()
    plain_value = value.value() if isinstance(value, kinds.Value) else value
    if isinstance(plain_value, dict):
        return {key: _json_of(each) for key, each in plain_value.items()}
    if isinstance(plain_value, list):
        return [_json_of(each) for each in plain_value]
    if (
        isinstance(plain_value, str)
        and plain_value is not value
        and value.type() == kinds.Type.ERROR
    ):
        return Failure(plain_message(plain_value))
    if isinstance(plain_value, str | bool | int | float) or plain_value is None:
        return plain_value
    raise TypeError(f"a result with a {type(plain_value).__name__} is not JSON")


def plain_message(text: str) -> str:
    """Return a message of the runtime without its codes."""
    return _STATUS.sub("", text)


@cache
def _environment(names: tuple[str, ...]) -> cel.Env:
    return new_environment(dict.fromkeys(names, ""))


def new_environment(types: Mapping[str, Any], pool: Any = None) -> cel.Env:
    """Return an environment over variables.

    Parameters
    ----------
    types
        Variable -> its type or the name of its message, empty for any type.
    pool
        Descriptions of the messages.
    """
    kinds = cel_types()
    variables = {
        name: (kinds(each) if each else kinds.DYN) if isinstance(each, str) else each
        for name, each in types.items()
    }
    return environment_over(variables | {HAS_OLD: kinds.BOOL}, _rule_functions(), pool)


def environment_over(
    variables: Mapping[str, Any], functions: tuple[CelFunction, ...], pool: Any = None
) -> cel.Env:
    """Return an environment over variables of these types, with these functions of Kubernetes."""
    from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

    return _runtime().NewEnv(
        pool,
        variables=dict(variables),
        functions=_declared(functions),
        extensions=[
            ext_bindings.ExtBindings(),
            ext_optional.ExtOptional(),
            ext_strings.ExtStrings(),
        ],
    )


@cache
def cel_types() -> Any:
    """Return the types of the runtime.

    Raises
    ------
    ImportError
        The runtime is not installed.
    """
    return _runtime().Type


def quantities_by_name() -> Any:
    """Return the type of a map by domain of maps of quantities by name."""
    kinds = _runtime().Type
    return kinds.Map(kinds.STRING, kinds.Map(kinds.STRING, kinds.BYTES))


@cache
def _rule_functions() -> tuple[CelFunction, ...]:
    return (*rule_functions(), *authorizer_functions())


@cache
def _declared(functions: tuple[CelFunction, ...]) -> list[cel.FunctionDecl]:
    runtime = _runtime()
    kinds = runtime.Type
    lists = {"LIST": kinds.List(kinds.DYN), "TEXTS": kinds.List(kinds.STRING)}
    overloads: dict[str, list[cel.Overload]] = {}
    for function in functions:
        overloads.setdefault(function.name, []).append(
            runtime.Overload(
                id="_".join((function.name, *function.parameters)).lower(),
                parameters=[
                    lists.get(name) or getattr(kinds, name) for name in function.parameters
                ],
                return_type=lists.get(function.returns) or getattr(kinds, function.returns),
                is_member=function.is_member,
                impl=function.implementation,
            )
        )
    return [runtime.FunctionDecl(name, items) for name, items in overloads.items()]


@cache
def _runtime() -> Any:
    from cel_expr_python import cel

    return cel
