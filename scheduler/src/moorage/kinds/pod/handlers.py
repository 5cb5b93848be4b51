"""The rules of a container's life: probes, hooks, the actions of both, and restarts.

Mirrors kubernetes v1.36 pkg/apis/core/validation/validation.go (validateProbe, validateHandler,
validateLifecycle, validateContainerRestartPolicy).
"""

from __future__ import annotations

import re
from typing import Any, Final

from moorage.kinds.fields import each, if_present, needed, one_of, port, rules, within
from moorage.kinds.kind import FieldError, forbidden, invalid, required, too_many
from moorage.kinds.tree import Json, child, items, number, objects, text

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
HANDLERS = ("lifecycle", *_PROBES)
"""The fields of a container that have hooks or probes."""
_OF_PROBES = ("exec", "httpGet", "tcpSocket", "grpc")
_OF_HOOKS = ("exec", "httpGet", "tcpSocket", "sleep")
_HEADER = re.compile("[-A-Za-z0-9]+")
_HEADER_DETAIL = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
    "regex used for validation is '[-A-Za-z0-9]+')"
)
_NOT_OF_INIT = "may not be set for init containers without restartPolicy=Always"


def _port(value: Any, where: str) -> list[FieldError]:
    return port(0 if value is None else value, where)


def _headers(action: Json, where: str) -> list[FieldError]:
    names = [text(each, "name") for each in objects(action, "httpHeaders")]
    return [
        invalid(f"{where}.httpHeaders", name, _HEADER_DETAIL)
        for name in names
        if not _HEADER.fullmatch(name)
    ]


_ACTIONS = {
    "exec": rules(("command", needed())),
    "httpGet": rules(
        ("path", needed()), ("port", _port), ("scheme", one_of("HTTP", "HTTPS")), _headers
    ),
    "tcpSocket": rules(("port", _port)),
    "grpc": rules(("port", _port)),
}


def _sleep(action: Json, where: str, grace: Any) -> list[FieldError]:
    seconds = number(action, "seconds")
    if seconds >= 0 and (grace is None or seconds <= grace):
        return []
    detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
    return [invalid(where, seconds, detail)]


def _handler(
    handler: Json, where: str, allowed: tuple[str, ...], grace: Any = None
) -> list[FieldError]:
    """Check the one action of a probe or hook; of several, only the first is looked into."""
    actions = [name for name in allowed if handler.get(name) is not None]
    if not actions:
        return [required(where, "must specify a handler type")]
    first, *more = actions
    place = f"{where}.{first}"
    if first == "sleep":
        errors = _sleep(handler[first], place, grace)
    else:
        errors = _ACTIONS[first](handler[first], place)
    detail = "may not specify more than 1 handler type"
    return errors + [forbidden(f"{where}.{name}", detail) for name in more]


_times = rules(
    (
        "initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold",
        within(0),
    ),
    ("terminationGracePeriodSeconds", if_present(within(1, None, "must be greater than 0"))),
)
_once = within(1, 1, "must be 1")


def _probe(probe: Json, where: str, name: str) -> list[FieldError]:
    errors = _handler(probe, where, _OF_PROBES) + _times(probe, where)
    if name != "readinessProbe":
        return errors + _once(probe.get("successThreshold"), f"{where}.successThreshold")
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None:
        detail = "must not be set for readinessProbes"
        errors.append(invalid(f"{where}.terminationGracePeriodSeconds", grace, detail))
    return errors


def check_handlers(container: Json, where: str, spec: Json) -> list[FieldError]:
    """Check the hooks and probes of a container that goes on running.

    Parameters
    ----------
    container, where
        The container and its path.
    spec
        The spec of its pod.
    """
    errors, grace = [], spec.get("terminationGracePeriodSeconds")
    hooks = child(container, "lifecycle")
    for name in ("postStart", "preStop"):
        if hooks.get(name) is not None:
            errors += _handler(hooks[name], f"{where}.lifecycle.{name}", _OF_HOOKS, grace)
    for name in _PROBES:
        if container.get(name) is not None:
            errors += _probe(container[name], f"{where}.{name}", name)
    return errors


def forbid_handlers(container: Json, where: str) -> list[FieldError]:
    """Refuse hooks and probes of an init container that ends."""
    return [
        forbidden(f"{where}.{name}", _NOT_OF_INIT)
        for name in HANDLERS
        if container.get(name) is not None
    ]


RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
_RULES_MAX: Final = 20
_CODES_MAX: Final = 255

_policy = if_present(one_of(*RESTART_POLICIES, empty="required"))


def _few_codes(codes: Json, where: str) -> list[FieldError]:
    count = len(items(codes, "values"))
    return [too_many(f"{where}.values", count, _CODES_MAX)] if count > _CODES_MAX else []


_codes = rules(("operator", one_of("In", "NotIn", empty="required")), _few_codes)


def _exit_codes(codes: Any, where: str) -> list[FieldError]:
    return [required(where, "must be specified")] if codes is None else _codes(codes, where)


_rules = each(
    rules(
        ("action", one_of("Restart", "RestartAllContainers", empty="required")),
        ("exitCodes", _exit_codes),
    ),
    most=_RULES_MAX,
)


def check_restarts(container: Json, where: str) -> list[FieldError]:
    """Check the restart policy of a container, and the rules that refine it."""
    policy, exit_rules = container.get("restartPolicy"), container.get("restartPolicyRules")
    errors = _policy(policy, f"{where}.restartPolicy")
    if not exit_rules:
        return errors
    if policy is None:
        detail = "must specify restartPolicy when restart rules are used"
        errors.append(required(f"{where}.restartPolicy", detail))
    return errors + _rules(exit_rules, f"{where}.restartPolicyRules")
