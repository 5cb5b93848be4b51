"""The expressions of a policy: compiled once, evaluated on each write that the policy matches.

Place in the flow: `denying` and `mutating` evaluate policies here, where
`moorage.cel.evaluators` says. The kinds of
policies check their expressions here. Mirrors kubernetes v1.36 apiserver
pkg/admission/plugin/policy/validating/validator.go and
pkg/admission/plugin/webhook/matchconditions/matcher.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, wraps
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

import msgspec

from moorage.cel.authorizer import (
    AUTHORIZER,
    REQUEST_RESOURCE,
    Authorize,
    Decision,
    RightCheck,
    RightChecks,
    current_checks,
)
from moorage.cel.budget import Budget
from moorage.cel.evaluators import evaluate_within
from moorage.cel.rule_text import QUOTED
from moorage.cel.runtime import (
    OVER_BUDGET,
    Failure,
    Program,
    Refusal,
    activation,
    compile_over,
    evaluate,
    evaluate_json,
)
from moorage.cel.values import Size, cel_value
from moorage.policies.object_literals import with_maps

APPLY_CONFIGURATION: Final = "ApplyConfiguration"
"""The type of a mutation that is a configuration; the other type is ``JSONPatch``."""
NAMES: Final = (
    "object",
    "oldObject",
    "request",
    "params",
    "namespaceObject",
    AUTHORIZER,
    REQUEST_RESOURCE,
)
"""The variables of policies, besides the policy's own."""
DECISIONS: Final = "decisions"
"""The key of the decisions about rights, among the values of variables."""
_PATCHES: Final = ("map", "list")
# Types of results in Python, by the type that an expression has to have.
_RESULTS: Final[Mapping[str, Any]] = {
    "bool": bool | Failure,
    "string": str | Failure | None,
    "map": dict | Failure,
    "list": list | Failure,
}
_OWN: Final = re.compile(
    rf"{QUOTED.pattern}|(?<![\w.])variables\s*\.\s*(?P<name>[A-Za-z_]\w*)", re.S
)


class NamedExpression(msgspec.Struct, frozen=True):
    """A match condition, or a variable."""

    name: str = ""
    expression: str = ""


class Validation(msgspec.Struct, frozen=True, rename="camel"):
    """One validation of a policy."""

    expression: str = ""
    message: str = ""
    message_expression: str = ""
    reason: str = ""


class AuditAnnotation(msgspec.Struct, frozen=True, rename="camel"):
    """An annotation of the audit event."""

    key: str = ""
    value_expression: str = ""


class Patch(msgspec.Struct, frozen=True):
    """The expression of a patch."""

    expression: str = ""


class Mutation(msgspec.Struct, frozen=True, rename="camel"):
    """One mutation of a policy."""

    patch_type: str = ""
    apply_configuration: Patch | None = None
    json_patch: Patch | None = msgspec.field(default=None, name="jsonPatch")

    @property
    def expression(self) -> str:
        """The expression of the patch."""
        found = self.apply_configuration if self.is_configuration else self.json_patch
        return "" if found is None else found.expression

    @property
    def is_configuration(self) -> bool:
        """Whether the patch is a configuration; otherwise it is a JSON patch."""
        return self.patch_type == APPLY_CONFIGURATION

    @property
    def wanted(self) -> str:
        """The type of the patch."""
        return "map" if self.is_configuration else "list"


class Policy(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a policy's ``spec`` that is evaluated, validating or mutating."""

    failure_policy: str = "Fail"
    reinvocation_policy: str = "Never"
    match_conditions: tuple[NamedExpression, ...] = ()
    variables: tuple[NamedExpression, ...] = ()
    validations: tuple[Validation, ...] = ()
    audit_annotations: tuple[AuditAnnotation, ...] = ()
    mutations: tuple[Mutation, ...] = ()


def read_policy(spec: Mapping[str, Any]) -> Policy:
    """Return a policy from its ``spec``, which fits the schema."""
    return msgspec.convert({key: value for key, value in spec.items() if value is not None}, Policy)


class Failed(NamedTuple):
    """A validation that does not hold: its message, the reason of the refusal, and its place."""

    message: str
    reason: str = ""
    place: int = 0


class Judgement(NamedTuple):
    """The validations that a write does not keep, and the (key, text) of audit annotations."""

    failures: list[Failed]
    annotations: tuple[tuple[str, str], ...] = ()


class Undecided(NamedTuple):
    """The checks of rights that an evaluation lacks the decisions about."""

    checks: tuple[RightCheck, ...]


class _UndecidedError(Exception):
    """An evaluation lacks decisions about rights."""


@lru_cache(maxsize=1024)
def compiled(own: tuple[NamedExpression, ...], expression: str, wanted: str) -> Program | Refusal:
    """Return an expression compiled; ``own`` are the variables of its policy."""
    text = _with_variables(own, expression)
    return compile_over(with_maps(text) if wanted in _PATCHES else text, wanted, NAMES)


def _with_variables(own: tuple[NamedExpression, ...], expression: str) -> str:
    """Return an expression with the policy's variables bound, each where it is needed.

    A variable may use the variables before it. The runtime evaluates it when it is first used.
    """
    text_so_far = _renamed(expression)
    for each in reversed(own):
        name = f"variables__{each.name}"
        if re.search(rf"\b{re.escape(name)}\b", text_so_far):
            text_so_far = f"cel.bind({name}, ({_renamed(each.expression)}\n), {text_so_far}\n)"
    return text_so_far


def _renamed(expression: str) -> str:
    def rename(match: re.Match[str]) -> str:
        return f"variables__{match['name']}" if match["name"] else match[0]

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
    for index, note in enumerate(policy.audit_annotations):
        yield f"spec.auditAnnotations[{index}].valueExpression", note.value_expression, "string"
    for index, mutation in enumerate(policy.mutations):
        name = "applyConfiguration" if mutation.is_configuration else "jsonPatch"
        path = f"spec.mutations[{index}].{name}.expression"
        yield path, mutation.expression, mutation.wanted


def missing(policy: Policy, *, knows_rights: bool = True) -> list[str]:
    """Return the reasons why a policy cannot be evaluated here: functions that are missing.

    Parameters
    ----------
    policy
        The policy.
    knows_rights
        Whether there is somebody who decides about checks of rights.
    """
    lines = []
    for path, expression, wanted in parts(policy):
        program = compiled(policy.variables, expression, wanted)
        if isinstance(program, Refusal):
            lines.append(f"{path}: {program.missing or program.message}")
        elif not knows_rights and AUTHORIZER in program.reading.names:
            lines.append(f"{path}: the rights that `{AUTHORIZER}` asks about are not known")
    return lines


Result = TypeVar("Result")
_P = ParamSpec("_P")


def _deciding(function: Callable[_P, Result]) -> Callable[_P, Result | Undecided]:
    """Have a function return the checks of rights that it lacks the decisions about."""

    @wraps(function)
    def evaluated(*arguments: _P.args, **options: _P.kwargs) -> Result | Undecided:
        try:
            return function(*arguments, **options)
        except _UndecidedError as error:
            return Undecided(error.args[0])

    return evaluated


@_deciding
def judgement(policy: Policy, values: Mapping[str, Any], *, only_quick: bool = False) -> Judgement:
    """Return what a policy finds about a write, or the checks that lack a decision.

    Parameters
    ----------
    policy
        A policy without `missing` functions.
    values
        Decoded JSON by variable, for each of `NAMES`.
    only_quick
        Raise `moorage.cel.budget.MayTakeLong` instead of taking long.
    """
    evaluation = _Evaluation(policy, values, only_quick=only_quick)
    applies_to = evaluation.applies()
    if isinstance(applies_to, Failed):
        return Judgement([applies_to] if policy.failure_policy != "Ignore" else [])
    if not applies_to:
        return Judgement([])
    found = [evaluation.failed(*each) for each in enumerate(policy.validations)]
    notes = [evaluation.annotation(each) for each in policy.audit_annotations]
    failures = [each for each in (*found, *notes) if isinstance(each, Failed)]
    return Judgement(
        failures, tuple(each for each in notes if each and not isinstance(each, Failed))
    )


@_deciding
def applies(
    policy: Policy, values: Mapping[str, Any], *, only_quick: bool = False
) -> bool | Failed:
    """Return whether the match conditions of a policy hold, or why that is not known."""
    return _Evaluation(policy, values, only_quick=only_quick).applies()


@_deciding
def patch_of(
    policy: Policy, mutation: Mutation, values: Mapping[str, Any], *, only_quick: bool = False
) -> Any:
    """Return the patch of a mutation as decoded JSON, or why it has none."""
    evaluation = _Evaluation(policy, values, only_quick=only_quick)
    found = evaluation.answer(mutation.expression, mutation.wanted)
    return _error(mutation.expression, found) if isinstance(found, Failure) else found


def _error(expression: str, failure: Failure) -> Failed:
    return Failed(f"expression '{expression}' resulted in error: {failure.message}")


def evaluate_with_rights(
    authorize: Authorize | None,
    function: Callable[..., Any],
    policy: Policy,
    *arguments: Any,
) -> Any:
    """Call `judgement`, `applies` or `patch_of`, again after each check that lacked a decision.

    Parameters
    ----------
    authorize
        Decides about a check; None where no expression asks about rights.
    function
        One of the three.
    policy
        The policy.
    *arguments
        Further arguments of the function; the last are the values of the variables.

    Returns
    -------
    Any
        The result; None where another process gives up.

    Raises
    ------
    moorage.cel.evaluators.TooLongHere
        The expressions may take long, and the caller is in the loop.
    """
    *others, values = arguments
    decisions: dict[RightCheck, Decision] = {}
    while True:
        result = evaluate_within(function, policy, *others, {**values, DECISIONS: decisions})
        if not isinstance(result, Undecided):
            return result
        assert authorize is not None, "policies that ask about rights are left out without it"
        decisions = decisions | {check: authorize(check) for check in result.checks}


class _Evaluation:
    """The evaluation of one policy on one write."""

    def __init__(self, policy: Policy, values: Mapping[str, Any], *, only_quick: bool) -> None:
        self._policy = policy
        self._budget = Budget(only_quick=only_quick)
        self._size = Size()
        self._fault = ""
        self._checks = RightChecks(values.get(DECISIONS) or {})
        try:
            self._known = {name: cel_value({}, values.get(name), self._size) for name in NAMES}
        except ValueError as error:
            self._fault = str(error)
        else:
            self._variables = activation(self._known, NAMES)

    def answer(self, expression: str, wanted: str) -> Any:
        """Return the result of an expression, a bool or a text; or a failure."""
        program = compiled(self._policy.variables, expression, wanted)
        assert isinstance(program, Program), "the policy has no missing functions"
        if self._fault:
            return Failure(self._fault)
        if not self._budget.allows(program, self._known, self._size):
            return OVER_BUDGET
        asked = evaluate_json if wanted in _PATCHES else evaluate
        token = current_checks.set(self._checks)
        try:
            answer = asked(program, self._variables)
        finally:
            current_checks.reset(token)
        if self._checks.undecided:
            raise _UndecidedError(tuple(self._checks.undecided))
        right = isinstance(answer, _RESULTS[wanted])
        return answer if right else Failure("no such overload")

    def applies(self) -> bool | Failed:
        """Return whether the match conditions hold; one that does not outweighs a failure."""
        failed = None
        for condition in self._policy.match_conditions:
            answer = self.answer(condition.expression, "bool")
            if answer is False:
                return False
            if isinstance(answer, Failure):
                failed = failed or _error(condition.expression, answer)
        return failed or True

    def annotation(self, note: AuditAnnotation) -> tuple[str, str] | Failed | None:
        """Return an audit annotation; None where its text is empty or null."""
        answer = self.answer(note.value_expression, "string")
        if isinstance(answer, Failure):
            ignored = self._policy.failure_policy == "Ignore"
            return None if ignored else _error(note.value_expression, answer)
        return (note.key, answer.strip()) if answer and answer.strip() else None

    def failed(self, index: int, validation: Validation) -> Failed | None:
        """Return the failure of a validation; None where it holds."""
        answer = self.answer(validation.expression, "bool")
        if answer is True:
            return None
        if isinstance(answer, Failure):
            ignored = self._policy.failure_policy == "Ignore"
            if ignored:
                return None
            return _error(validation.expression, answer)._replace(place=index)
        message = (
            validation.message.strip() or f"failed expression: {validation.expression.strip()}"
        )
        if validation.message_expression:
            told = self.answer(validation.message_expression, "string")
            if isinstance(told, str) and told.strip() and "\n" not in told.strip():
                message = told.strip()
        return Failed(message, validation.reason, index)
