"""Selectors of devices: CEL expressions, compiled once and evaluated once for each kind.

The CEL runtime is an extra of the package (``moorage[dra]``) and is imported with the first
selector; without it a selector cannot be used, and the message says what to install.

Rules mirrored: kubernetes v1.36 ``dynamic-resource-allocation/cel/compile.go``. The environment is
that of its base libraries as far as the runtime has them: not ``url``, ``ip``, ``cidr``, ``sets``,
``lists``, ``regex`` and the macros over two variables. The API server has compiled a stored
expression with all of them.

The runtime counts no cost and cannot be interrupted. So a selector that may cost more than the
limit of Kubernetes is not evaluated, and the selectors of one attempt share a limit as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from moorage.cel.bounds import Known
from moorage.cel.rule_functions import rule_functions
from moorage.cel.runtime import cel_types, environment_over, plain_message
from moorage.cel.selector_cost import (
    SELECTOR_COST_MAX,
    is_too_long,
    selector_cost,
)
from moorage.plugins.claims.devices.contract import AllocationError

if TYPE_CHECKING:
    from cel_expr_python import cel

_NOT_INSTALLED: Final = (
    "selectors need a CEL runtime, which is not installed: pip install 'moorage[dra]'"
)
_HINT: Final = (
    "Consider using CEL optional chaining (?), has() macro, or orValue() for optional fields"
)
_NO_SUCH_KEY: Final = re.compile(r"""^NOT_FOUND: Key not found in map : ["']?(.*?)["']?$""", re.S)
# Messages of the runtime, and the message of kube-scheduler's runtime, cel-go.
_WORDS: Final = {"divide by zero": "division by zero"}
_EXPRESSIONS_MAX: Final = 1024
"""Number of compiled expressions; a guess: people write selectors for classes and claims."""


_ATTEMPT_COST_MAX: Final = 10_000_000
"""Highest cost of all selectors that one attempt evaluates: 1.5 s at most, mostly 0.3 s."""
_COMPILE_COST: Final = 100
"""Cost of compiling one character: 5 µs."""


class SelectorFault(NamedTuple):
    """Reason why a selector has no answer; ``kind`` is "compile", "runtime" or "cost"."""

    kind: str
    message: str


class CelInput(NamedTuple):
    """The variable ``device``: maps by domain, then by name, as plain values."""

    driver: str
    attributes: Mapping[str, Mapping[str, Any]]
    capacity: Mapping[str, Mapping[str, bytes]]
    allow_multiple_allocations: bool
    is_oversized: bool
    """Whether it is larger than the API allows."""


class Effort:
    """The cost of the selectors that the current attempt has evaluated."""

    def __init__(self) -> None:
        self._rest = _ATTEMPT_COST_MAX

    def begin_attempt(self) -> None:
        """Start an attempt."""
        self._rest = _ATTEMPT_COST_MAX

    def spend(self, cost: int) -> None:
        """Take a cost from what is left.

        Raises
        ------
        AllocationError
            Nothing is left. Answers are kept, so that the next attempt continues from here.
        """
        if self._rest <= 0:
            raise AllocationError(
                f"the selectors of all claims of the pod cost more than {_ATTEMPT_COST_MAX} in "
                "this attempt; the next attempt continues from here"
            )
        self._rest -= cost


EFFORT: Final = Effort()


class _Selector(NamedTuple):
    expression: cel.Expression
    cost: int
    """Highest possible cost for the largest device that the API allows."""


def matches(expression: str, device: CelInput) -> bool | SelectorFault:
    """Whether a device fulfils a selector, or why the selector has no answer.

    Raises
    ------
    AllocationError
        The selectors of this attempt have cost too much.
    """
    selector = _compiled(expression)
    if isinstance(selector, SelectorFault):
        return selector
    cost = selector.cost
    if cost > SELECTOR_COST_MAX or device.is_oversized:
        known = Known([_variable(device, {})])
        cost = selector_cost(selector.expression.serialize(), known)
    if cost > SELECTOR_COST_MAX:
        return SelectorFault("cost", _too_complex(cost))
    EFFORT.spend(cost)
    return _evaluated(selector.expression, device)


def _too_complex(cost: int) -> str:
    return (
        f"too complex, exceeds cost limit (it may cost {cost}, and at most {SELECTOR_COST_MAX} "
        "is allowed)"
    )


def _evaluated(expression: cel.Expression, device: CelInput) -> bool | SelectorFault:
    domains: dict[str, dict[str, Any]] = {}
    while True:
        try:
            answer = expression.eval(data={"device": _variable(device, domains)})
        except RuntimeError as error:  # no answer: the runtime would need too many steps
            return SelectorFault("runtime", plain_message(str(error)))
        if not isinstance(answer.value(), str) or answer.type() != cel_types().ERROR:
            break
        # In Kubernetes, a domain that the device lacks is an empty map. In the runtime, its
        # lookup is an error. With an empty map added, the rest is evaluated.
        missing = _NO_SUCH_KEY.match(answer.value())
        if missing is None or missing[1] in domains:
            return SelectorFault("runtime", _runtime_message(answer.value()))
        domains[missing[1]] = {}
    if answer.type() != cel_types().BOOL:
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
def _compiled(expression: str) -> _Selector | SelectorFault:
    try:
        env = _environment()
    except ImportError:
        return SelectorFault("compile", _NOT_INSTALLED)
    if is_too_long(expression):
        return SelectorFault("cost", "too complex, it is too long or has too many macros")
    EFFORT.spend(_COMPILE_COST * len(expression))
    try:
        compiled = env.compile(expression)
    except RuntimeError as error:
        return SelectorFault("compile", f"compilation failed: {plain_message(str(error))}")
    result = compiled.return_type()
    if result not in (cel_types().BOOL, cel_types().DYN):
        text = f"must evaluate to bool or the unknown type, not {result.name().lower()}"
        return SelectorFault("compile", text)
    return _Selector(compiled, selector_cost(compiled.serialize()))


@cache
def _environment() -> cel.Env:
    return environment_over({"device": cel_types().DYN}, tuple(rule_functions()))


def _runtime_message(text: str) -> str:
    missing = _NO_SUCH_KEY.match(text)
    if missing is not None:
        return f"no such key: {missing[1]}. {_HINT}"
    if "No matching overloads found" in text:
        return "no such overload"
    plain = plain_message(text)
    return _WORDS.get(plain, plain)
