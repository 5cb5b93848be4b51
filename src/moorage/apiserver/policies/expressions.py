"""The expressions of a policy: compiled once, evaluated on each write that the policy matches.

Place in the flow: `denying` evaluates policies here, in this process or by the judge. The kinds of
policies check their expressions here. Mirrors kubernetes v1.36 apiserver
pkg/admission/plugin/policy/validating/validator.go and
pkg/admission/plugin/webhook/matchconditions/matcher.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from moorage.apiserver.custom.rules.evaluation import Work
from moorage.apiserver.custom.rules.reading import QUOTED
from moorage.apiserver.custom.rules.runtime import (
    Failure,
    Program,
    Refusal,
    activation,
    compile_over,
    evaluate,
)
from moorage.apiserver.custom.rules.values import Size, cel_value

NAMES: Final = ("object", "oldObject", "request", "params", "namespaceObject")
"""The variables of policies, besides the policy's own."""
_OWN: Final = re.compile(
    rf"{QUOTED.pattern}|(?<![\w.])variables\s*\.\s*(?P<name>[A-Za-z_]\w*)", re.S
)


class Named(msgspec.Struct, frozen=True):
    """A match condition, or a variable."""

    name: str = ""
    expression: str = ""


class Validation(msgspec.Struct, frozen=True, rename="camel"):
    """One validation of a policy."""

    expression: str = ""
    message: str = ""
    message_expression: str = ""
    reason: str = ""


class Policy(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a policy's ``spec`` that is evaluated."""

    failure_policy: str = "Fail"
    match_conditions: tuple[Named, ...] = ()
    variables: tuple[Named, ...] = ()
    validations: tuple[Validation, ...] = ()


def read_policy(spec: Mapping[str, Any]) -> Policy:
    """Return a policy from its ``spec``, which fits the schema."""
    return msgspec.convert({key: value for key, value in spec.items() if value is not None}, Policy)


class Failed(NamedTuple):
    """A validation that does not hold: its message, and the reason of the refusal."""

    message: str
    reason: str


@lru_cache(maxsize=1024)
def compiled(own: tuple[Named, ...], expression: str, wanted: str) -> Program | Refusal:
    """Return an expression compiled; ``own`` are the variables of its policy."""
    return compile_over(_with_variables(own, expression), wanted, NAMES)


def _with_variables(own: tuple[Named, ...], expression: str) -> str:
    """Return an expression with the policy's variables bound, each where it is needed.

    A variable may use the variables before it. The runtime evaluates it when it is first used.
    """
    found = _renamed(expression)
    for each in reversed(own):
        name = f"variables__{each.name}"
        if re.search(rf"\b{re.escape(name)}\b", found):
            found = f"cel.bind({name}, ({_renamed(each.expression)}\n), {found}\n)"
    return found


def _renamed(expression: str) -> str:
    def rename(found: re.Match[str]) -> str:
        return f"variables__{found['name']}" if found["name"] else found[0]

    return _OWN.sub(rename, expression)


def parts(policy: Policy) -> Iterator[tuple[str, str, str]]:
    """Yield (path, expression, type) of each expression of a policy."""
    for index, condition in enumerate(policy.match_conditions):
        yield f"spec.matchConditions[{index}].expression", condition.expression, "bool"
    for index, each in enumerate(policy.validations):
        yield f"spec.validations[{index}].expression", each.expression, "bool"
        if each.message_expression:
            path = f"spec.validations[{index}].messageExpression"
            yield path, each.message_expression, "string"


def missing(policy: Policy) -> list[str]:
    """Return the reasons why a policy cannot be evaluated here: functions that are missing."""
    found = []
    for path, expression, wanted in parts(policy):
        program = compiled(policy.variables, expression, wanted)
        if isinstance(program, Refusal):
            found.append(f"{path}: {program.missing or program.message}")
    return found


def failures(
    policy: Policy, values: Mapping[str, Any], *, only_quick: bool = False
) -> list[Failed]:
    """Return the validations of a policy that a write does not keep.

    Parameters
    ----------
    policy
        A policy without `missing` functions.
    values
        Decoded JSON by variable, for each of `NAMES`.
    only_quick
        Raise `moorage.apiserver.custom.rules.evaluation.MayTakeLong` instead of taking long.
    """
    evaluation = _Evaluation(policy, values, only_quick=only_quick)
    errors = []
    for condition in policy.match_conditions:
        answer = evaluation.answer(condition.expression, "bool")
        if answer is False:
            return []
        if isinstance(answer, Failure):
            errors.append(_error(condition.expression, answer))
    if errors:
        return errors if policy.failure_policy != "Ignore" else []
    found = (evaluation.failed(each) for each in policy.validations)
    return [each for each in found if each is not None]


def _error(expression: str, failure: Failure) -> Failed:
    return Failed(f"expression '{expression}' resulted in error: {failure.message}", "")


class _Evaluation:
    """The evaluation of one policy on one write."""

    def __init__(self, policy: Policy, values: Mapping[str, Any], *, only_quick: bool) -> None:
        self._policy = policy
        self._work = Work(only_quick=only_quick)
        self._size = Size()
        self._fault = ""
        try:
            known = {name: cel_value({}, values.get(name), self._size) for name in NAMES}
        except ValueError as error:
            self._fault = str(error)
        else:
            self._variables = activation(known, NAMES)

    def answer(self, expression: str, wanted: str) -> Any:
        """Return the result of an expression, a bool or a text; or a failure."""
        program = compiled(self._policy.variables, expression, wanted)
        assert isinstance(program, Program), "the policy has no missing functions"
        if self._fault:
            return Failure(self._fault)
        self._work.add(program, self._size)
        answer = evaluate(program, self._variables)
        right = isinstance(answer, Failure | (bool if wanted == "bool" else str))
        return answer if right else Failure("no such overload")

    def failed(self, validation: Validation) -> Failed | None:
        """Return the failure of a validation; None where it holds."""
        answer = self.answer(validation.expression, "bool")
        if answer is True:
            return None
        if isinstance(answer, Failure):
            ignored = self._policy.failure_policy == "Ignore"
            return None if ignored else _error(validation.expression, answer)
        message = (
            validation.message.strip() or f"failed expression: {validation.expression.strip()}"
        )
        if validation.message_expression:
            told = self.answer(validation.message_expression, "string")
            if isinstance(told, str) and told.strip() and "\n" not in told.strip():
                message = told.strip()
        return Failed(message, validation.reason)
