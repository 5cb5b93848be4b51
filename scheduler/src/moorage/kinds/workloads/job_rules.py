"""Rules of the spec of a Job, which the template of a CronJob has to follow as well.

Mirrors kubernetes v1.36 pkg/apis/batch/validation (validateJobSpec and what it calls).
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from moorage.api.names import DNS_LABEL_LENGTH_MAX, dns_subdomain_faults, qualified_name_faults
from moorage.kinds.fields import (
    Rule,
    duplicates,
    each,
    if_present,
    name_rule,
    one_of,
    rules,
    within,
)
from moorage.kinds.kind import FieldError, invalid, required, too_long, too_many
from moorage.kinds.pod.spec import template
from moorage.kinds.tree import Json, child, number, objects, text

_INDEXED: Final = "Indexed"
_INDEXES_MAX: Final = 100_000  # parallel pods, or failed indexes, of an indexed job
_INDEXES_MAX_OF_MANY: Final = 10_000  # the same, of a job with more completions than the former
_RULES_MAX: Final = 20
_EXIT_CODES_MAX: Final = 255
_SUCCEEDED_INDEXES_LENGTH_MAX: Final = 64 * 1024
_LIMITS_MOST: Final = 2  # of an interval of indexes
_INDEX: Final = re.compile(r"\+?[0-9]+")
_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


# --- indexes ---------------------------------------------------------------------------------


def _of_mode(spec: Json, where: str) -> list[FieldError]:
    """Check the fields whose meaning depends on the completion mode."""
    if text(spec, "completionMode") == _INDEXED:
        return _of_indexed(spec, where)
    return [
        invalid(f"{where}.{name}", spec[name], "requires indexed completion mode")
        for name in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")
        if spec.get(name) is not None
    ]


def _of_indexed(spec: Json, where: str) -> list[FieldError]:
    errors = []
    completions, failed_max = spec.get("completions"), spec.get("maxFailedIndexes")
    if completions is None:
        errors.append(required(f"{where}.completions", f"when completion mode is {_INDEXED}"))
    elif failed_max is not None and failed_max > completions:
        detail = "must be less than or equal to completions"
        errors.append(invalid(f"{where}.maxFailedIndexes", failed_max, detail))
    errors += _at_most(spec, where, _INDEXES_MAX, f"when completion mode is {_INDEXED}")
    many = number(spec, "completions") > _INDEXES_MAX
    if many and spec.get("backoffLimitPerIndex") is not None:
        above = f"when completions are above {_INDEXES_MAX} and used with backoff limit per index"
        if failed_max is None:
            detail = f"must be specified when completions is above {_INDEXES_MAX}"
            errors.append(required(f"{where}.maxFailedIndexes", detail))
        errors += _at_most(spec, where, _INDEXES_MAX_OF_MANY, above)
    if spec.get("successPolicy") is not None:
        errors += _success_policy(spec, f"{where}.successPolicy.rules")
    return errors


def _at_most(spec: Json, where: str, most: int, when: str) -> list[FieldError]:
    detail = f"must be less than or equal to {most} {when}"
    return [
        invalid(f"{where}.{name}", spec[name], detail)
        for name in ("parallelism", "maxFailedIndexes")
        if number(spec, name) > most
    ]


def _limited(spec: Json, where: str) -> list[FieldError]:
    if spec.get("maxFailedIndexes") is None or spec.get("backoffLimitPerIndex") is not None:
        return []
    return [required(f"{where}.backoffLimitPerIndex", "when maxFailedIndexes is specified")]


def _success_policy(spec: Json, where: str) -> list[FieldError]:
    rules = objects(spec, "successPolicy", "rules")
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        return [required(where, detail)]
    if len(rules) > _RULES_MAX:
        return [too_many(where, len(rules), _RULES_MAX)]
    errors = []
    for place, rule in enumerate(rules):
        errors += _success_rule(rule, f"{where}[{place}]", number(spec, "completions"))
    return errors


def _success_rule(rule: Json, where: str, completions: int) -> list[FieldError]:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        detail = "at least one of succeededCount or succeededIndexes must be specified"
        return [required(where, detail)]
    errors, total = [], None
    if indexes is not None:
        field = f"{where}.succeededIndexes"
        if len(indexes) > _SUCCEEDED_INDEXES_LENGTH_MAX:
            errors.append(too_long(field, _SUCCEEDED_INDEXES_LENGTH_MAX))
        try:
            total = _count_indexes(indexes, completions)
        except ValueError as problem:
            detail = f"error parsing succeededIndexes: {problem}"
            errors.append(invalid(field, indexes, detail))
            total = 0
    if count is not None:
        errors += _success_count(count, f"{where}.succeededCount", completions, total)
    return errors


def _success_count(
    count: int, where: str, completions: int, indexes: int | None
) -> list[FieldError]:
    errors = within(0)(count, where)
    if count > completions:
        detail = (
            f"must be less than or equal to {completions} (the number of specified completions)"
        )
        errors.append(invalid(where, count, detail))
    if indexes is not None and count > indexes:
        detail = (
            f"must be less than or equal to {indexes} "
            "(the number of indexes in the specified succeededIndexes field)"
        )
        errors.append(invalid(where, count, detail))
    return errors


def _count_indexes(indexes: str, completions: int) -> int:
    """Count the indexes that a text such as ``0-2,5`` names.

    Raises
    ------
    ValueError
        The text is wrong; the message is upstream's.
    """
    total, last = 0, -1
    for interval in indexes.split(",") if indexes else ():
        limits = interval.split("-")
        if len(limits) > _LIMITS_MOST:
            raise ValueError(
                f'the fragment "{interval}" violates the requirement that an index interval can '
                "have at most two parts separated by '-'"
            )
        low, *end = (_index(each, completions) for each in limits)
        high = end[0] if end else low
        for before, current in ((low, high), (last, low)) if end else ((last, low),):
            if before >= current:
                raise ValueError(f"non-increasing order, previous: {before}, current: {current}")
        total, last = total + high - low + 1, high
    return total


def _index(limit: str, completions: int) -> int:
    if not _INDEX.fullmatch(limit):
        raise ValueError(f'cannot convert string to integer for index: "{limit}"')
    if int(limit) >= completions:
        raise ValueError(f'too large index: "{limit}"')
    return int(limit)


# --- failures --------------------------------------------------------------------------------


_valid_action: Rule = one_of("Count", "FailIndex", "FailJob", "Ignore", empty="required")
_valid_operator: Rule = one_of("In", "NotIn", empty="required")
_pod_conditions: Rule = each(
    rules(
        ("type", name_rule(qualified_name_faults, empty="refused")),
        ("status", one_of("False", "True", "Unknown", empty="required")),
    ),
    most=_RULES_MAX,
)


def _failure_policy(spec: Json, where: str) -> list[FieldError]:
    policy = spec.get("podFailurePolicy")
    if policy is None:
        return []
    found, field = objects(policy, "rules"), f"{where}.podFailurePolicy.rules"
    errors = [too_many(field, len(found), _RULES_MAX)] if len(found) > _RULES_MAX else []
    for place, rule in enumerate(found):
        errors += _failure_rule(rule, f"{field}[{place}]", spec)
    restart = text(spec, "template", "spec", "restartPolicy")
    if restart == "OnFailure":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        errors.append(invalid(f"{where}.template.spec.restartPolicy", restart, detail))
    return errors


def _failure_rule(rule: Json, where: str, spec: Json) -> list[FieldError]:
    action = text(rule, "action")
    errors = _valid_action(action, f"{where}.action")
    if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        detail = "requires the backoffLimitPerIndex to be set"
        errors.append(invalid(f"{where}.action", action, detail))
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
    if codes is not None:
        errors += _exit_codes(codes, f"{where}.onExitCodes", spec)
    errors += _pod_conditions(conditions, f"{where}.onPodConditions")
    if codes is not None and conditions:
        detail = "specifying both OnExitCodes and OnPodConditions is not supported"
        errors.append(invalid(where, rule, detail))
    elif codes is None and not conditions:
        detail = "specifying one of OnExitCodes and OnPodConditions is required"
        errors.append(invalid(where, rule, detail))
    return errors


def _exit_codes(codes: Json, where: str, spec: Json) -> list[FieldError]:
    operator, name = text(codes, "operator"), codes.get("containerName")
    errors = _valid_operator(operator, f"{where}.operator")
    if name is not None and name not in _container_names(spec):
        detail = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{where}.containerName", name, detail))
    field, values = f"{where}.values", codes.get("values") or []
    if not values:
        errors.append(invalid(field, values, "at least one value is required"))
    elif len(values) > _EXIT_CODES_MAX:
        errors.append(too_many(field, len(values), _EXIT_CODES_MAX))
    if operator == "In" and 0 in values:
        place = f"{field}[{values.index(0)}]"
        errors.append(invalid(place, 0, "must not be 0 for the In operator"))
    errors += duplicates(values, lambda place: f"{field}[{place}]")
    if any(one > other for one, other in pairwise(values)):
        errors.append(invalid(field, values, "must be ordered"))
    return errors


def _container_names(spec: Json) -> set[str]:
    pod = child(spec, "template", "spec")
    return {
        text(container, "name")
        for kind in ("containers", "initContainers")
        for container in objects(pod, kind)
    }


def _replacement(spec: Json, where: str) -> list[FieldError]:
    failing = spec.get("podFailurePolicy") is not None
    allowed = ("Failed",) if failing else ("Failed", "TerminatingOrFailed")
    value = spec.get("podReplacementPolicy")
    return one_of(*allowed, empty="absent")(value, f"{where}.podReplacementPolicy")


# --- the controller --------------------------------------------------------------------------


def _manager(value: str, where: str) -> list[FieldError]:
    """Check the name of a controller: a domain, a slash, and a path."""
    domain, _, path = value.partition("/")
    if not domain or not path:
        detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
        errors = [invalid(where, value, detail) if value else required(where)]
    else:
        errors = [invalid(where, domain, fault) for fault in dns_subdomain_faults(domain)]
        if not _PATH.fullmatch(path):
            detail = f"Invalid path (regex used for validation is '{_PATH.pattern}')"
            errors.append(invalid(where, path, detail))
    if len(value) > DNS_LABEL_LENGTH_MAX:
        errors.append(too_long(where, DNS_LABEL_LENGTH_MAX))
    return errors


check_job_spec: Rule = rules(
    (
        "parallelism completions activeDeadlineSeconds backoffLimit ttlSecondsAfterFinished "
        "backoffLimitPerIndex maxFailedIndexes",
        within(0),
    ),
    _limited,
    ("managedBy", if_present(_manager)),
    ("completionMode", one_of(_INDEXED, "NonIndexed", empty="absent")),
    _of_mode,
    _failure_policy,
    _replacement,
    ("template", template("OnFailure", "Never")),
)
"""The rule of a job's spec; its selector is left to the caller."""
