"""Selectors of devices: CEL expressions, compiled once and evaluated once for each kind.

The CEL runtime is an extra of the package (``moorage[dra]``) and is imported with the first
selector; without it a selector cannot be used, and the message says what to install.

Rules mirrored: kubernetes v1.36 ``dynamic-resource-allocation/cel/compile.go``. The environment is
that of its base libraries as far as the runtime has them: not ``url``, ``ip``, ``cidr``, ``sets``,
``lists``, ``regex`` and the macros over two variables, nor a limit on the cost of an expression.
The API server has compiled a stored expression with all of them and with the limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from moorage.api.cel_functions import cel_functions

if TYPE_CHECKING:
    from cel_expr_python import cel

_NOT_INSTALLED: Final = (
    "selectors need a CEL runtime, which is not installed: pip install 'moorage[dra]'"
)
_HINT: Final = (
    "Consider using CEL optional chaining (?), has() macro, or orValue() for optional fields"
)
_STATUS: Final = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_NO_SUCH_KEY: Final = re.compile(r"""^NOT_FOUND: Key not found in map : ["']?(.*?)["']?$""", re.S)
# Messages of the runtime, and the message of kube-scheduler's runtime, cel-go.
_WORDS: Final = {"divide by zero": "division by zero"}
_EXPRESSIONS_MAX: Final = 1024
"""Number of compiled expressions; a guess: people write selectors for classes and claims."""


class SelectorFault(NamedTuple):
    """Reason why a selector has no answer; ``kind`` is "compile" or "runtime"."""

    kind: str
    message: str


class CelInput(NamedTuple):
    """The variable ``device``: maps by domain, then by name, as plain values."""

    driver: str
    attributes: Mapping[str, Mapping[str, Any]]
    capacity: Mapping[str, Mapping[str, bytes]]
    allow_multiple_allocations: bool


def matches(expression: str, device: CelInput) -> bool | SelectorFault:
    """Whether a device fulfils a selector, or why the selector has no answer."""
    compiled = _compiled(expression)
    if isinstance(compiled, SelectorFault):
        return compiled
    domains: dict[str, dict[str, Any]] = {}
    while True:
        try:
            answer = compiled.eval(data={"device": _variable(device, domains)})
        except RuntimeError as error:  # no answer: the runtime would need too many steps
            return SelectorFault("runtime", _plain(str(error)))
        if not isinstance(answer.value(), str) or answer.type() != _runtime().Type.ERROR:
            break
        # In Kubernetes, a domain that the device lacks is an empty map. In the runtime, its
        # lookup is an error. With an empty map added, the rest is evaluated.
        missing = _NO_SUCH_KEY.match(answer.value())
        if missing is None or missing[1] in domains:
            return SelectorFault("runtime", _runtime_message(answer.value()))
        domains[missing[1]] = {}
    if answer.type() != _runtime().Type.BOOL:
        name = answer.type().name().lower()
        return SelectorFault("runtime", f"CEL result of type {name} could not be converted to bool")
    return bool(answer.value())


def _variable(device: CelInput, domains: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "driver": device.driver,
        "attributes": {**domains, **device.attributes},
        "capacity": {**domains, **device.capacity},
        "allowMultipleAllocations": device.allow_multiple_allocations,
    }


@lru_cache(maxsize=_EXPRESSIONS_MAX)
def _compiled(expression: str) -> cel.Expression | SelectorFault:
    try:
        env = _environment()
    except ImportError:
        return SelectorFault("compile", _NOT_INSTALLED)
    try:
        compiled = env.compile(expression)
    except RuntimeError as error:
        return SelectorFault("compile", f"compilation failed: {_plain(str(error))}")
    result = compiled.return_type()
    if result not in (_runtime().Type.BOOL, _runtime().Type.DYN):
        text = f"must evaluate to bool or the unknown type, not {result.name().lower()}"
        return SelectorFault("compile", text)
    return compiled


@cache
def _environment() -> cel.Env:
    runtime = _runtime()
    from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

    types = {
        name: getattr(runtime.Type, name) for name in ("BOOL", "BYTES", "DOUBLE", "INT", "STRING")
    }
    overloads: dict[str, list[cel.Overload]] = {}
    for function in cel_functions():
        overloads.setdefault(function.name, []).append(
            runtime.Overload(
                id="_".join((function.name, *function.parameters)).lower(),
                parameters=[types[name] for name in function.parameters],
                return_type=types[function.returns],
                is_member=function.is_member,
                impl=function.implementation,
            )
        )
    return runtime.NewEnv(
        variables={"device": runtime.Type.DYN},
        functions=[runtime.FunctionDecl(name, items) for name, items in overloads.items()],
        extensions=[
            ext_bindings.ExtBindings(),
            ext_optional.ExtOptional(),
            ext_strings.ExtStrings(),
        ],
    )


@cache
def _runtime() -> Any:
    from cel_expr_python import cel

    return cel


def _runtime_message(text: str) -> str:
    missing = _NO_SUCH_KEY.match(text)
    if missing is not None:
        return f"no such key: {missing[1]}. {_HINT}"
    if "No matching overloads found" in text:
        return "no such overload"
    plain = _plain(text)
    return _WORDS.get(plain, plain)


def _plain(text: str) -> str:
    """Return a message of the runtime without its codes."""
    return _STATUS.sub("", text)
