"""The variable ``authorizer``: functions of CEL that ask whether a user may make a call.

Place in the flow: admission policies and match conditions of webhooks use them. An evaluation is
pure: it knows the decisions that are handed in. A check without a decision ends it, and whoever
evaluates decides and evaluates once more (`RightChecks`), also in another process.

CEL has no types for these values. They are carried as bytes: a letter for the type and the check so
far. Mirrors kubernetes v1.36 apiserver/pkg/cel/library ``authz.go``. Selectors of fields and labels
are read and make no difference: roles know none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final

import msgspec

from moorage.api.names import dns_label_faults, dns_subdomain_faults
from moorage.cel.functions import CelFunction

AUTHORIZER: Final = "authorizer"
"""The variable that asks about the caller, or about a service account."""
REQUEST_RESOURCE: Final = "authorizer.requestResource"
"""The variable that asks about the caller and the object of the call."""

_BASE, _GROUP, _RESOURCE, _PATH, _DECISION = b"a", b"g", b"r", b"p", b"d"


class RightCheck(msgspec.Struct, frozen=True, omit_defaults=True):
    """The question whether a user may make a call.

    Parameters
    ----------
    account
        NAMESPACE/NAME of a service account; empty for the caller.
    verb, group, resource, subresource, namespace, name, path
        The call.
    """

    account: str = ""
    verb: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class Decision(msgspec.Struct, frozen=True):
    """The answer to a `RightCheck`, and the reason."""

    allowed: bool
    reason: str = ""


Decisions = Mapping[RightCheck, Decision]
Authorize = Callable[[RightCheck], Decision]
"""Decides about a check."""


class RightChecks:
    """The checks of one evaluation: those with a decision, and those that lack one.

    Parameters
    ----------
    decisions
        The decisions so far.
    """

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions
        self.undecided: dict[RightCheck, None] = {}

    def decision(self, check: RightCheck) -> Decision | None:
        """Return the decision about a check; None notes that the check lacks one."""
        decision = self._decisions.get(check)
        if decision is None:
            self.undecided[check] = None
        return decision


current_checks: ContextVar[RightChecks] = ContextVar("right_checks")
"""The checks of the evaluation that is under way."""
_decode_check = msgspec.json.Decoder(RightCheck).decode
_decode_decision = msgspec.json.Decoder(Decision).decode
_encode = msgspec.json.Encoder().encode


def authorizer_values(request: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the variables for a call, whose variable ``request`` is given."""
    resource = request["requestResource"]
    check = RightCheck(
        group=resource["group"],
        resource=resource["resource"],
        subresource=request.get("subResource") or "",
        namespace=request.get("namespace") or "",
        name=request.get("name") or "",
    )
    return {AUTHORIZER: _value(_BASE, RightCheck()), REQUEST_RESOURCE: _value(_RESOURCE, check)}


def authorizer_functions() -> Iterator[CelFunction]:
    """Yield every function of the library."""
    one, two = ("BYTES", "STRING"), ("BYTES", "STRING", "STRING")
    yield CelFunction("path", one, "BYTES", True, _path)
    yield CelFunction("group", one, "BYTES", True, _with("group", _BASE, _GROUP))
    yield CelFunction("serviceAccount", two, "BYTES", True, _service_account)
    yield CelFunction("resource", one, "BYTES", True, _resource)
    for name in ("subresource", "namespace", "name"):
        yield CelFunction(name, one, "BYTES", True, _with(name, _RESOURCE, _RESOURCE))
    for name in ("fieldSelector", "labelSelector"):
        yield CelFunction(name, one, "BYTES", True, _selector)
    yield CelFunction("check", one, "BYTES", True, _check)
    yield CelFunction("allowed", ("BYTES",), "BOOL", True, lambda d: _decision(d).allowed)
    yield CelFunction("reason", ("BYTES",), "STRING", True, lambda d: _decision(d).reason)
    yield CelFunction("errored", ("BYTES",), "BOOL", True, lambda d: bool(_error(d)))
    yield CelFunction("error", ("BYTES",), "STRING", True, _error)


def _value(kind: bytes, content: RightCheck | Decision) -> bytes:
    return kind + _encode(content)


def _read(value: bytes, kinds: bytes) -> RightCheck:
    if value[:1] not in kinds:
        raise ValueError("no such overload")
    return _decode_check(bytes(value[1:]))


def _decision(value: bytes) -> Decision:
    if value[:1] != _DECISION:
        raise ValueError("no such overload")
    return _decode_decision(bytes(value[1:]))


def _error(value: bytes) -> str:
    """Return the error of a decision: reading roles never fails."""
    _decision(value)
    return ""


def _with(field: str, kind: bytes, result: bytes) -> Callable[[bytes, str], bytes]:
    def changed(value: bytes, text: str) -> bytes:
        return _value(result, msgspec.structs.replace(_read(value, kind), **{field: text}))

    return changed


def _path(value: bytes, path: str) -> bytes:
    if not path.strip():
        raise ValueError("path must not be empty")
    return _value(_PATH, msgspec.structs.replace(_read(value, _BASE), path=path))


def _resource(value: bytes, resource: str) -> bytes:
    if not resource.strip():
        raise ValueError("resource must not be empty")
    return _value(_RESOURCE, msgspec.structs.replace(_read(value, _GROUP), resource=resource))


def _service_account(value: bytes, namespace: str, name: str) -> bytes:
    check = _read(value, _BASE)
    if dns_subdomain_faults(name):
        raise ValueError("Invalid service account name")
    if dns_label_faults(namespace):
        raise ValueError("Invalid service account namespace")
    return _value(_BASE, msgspec.structs.replace(check, account=f"{namespace}/{name}"))


def _selector(value: bytes, selector: str) -> bytes:
    return _value(_RESOURCE, _read(value, _RESOURCE))


def _check(value: bytes, verb: str) -> bytes:
    check = msgspec.structs.replace(_read(value, _RESOURCE + _PATH), verb=verb)
    decision = current_checks.get().decision(check)
    if decision is None:
        raise ValueError("the decision is not known yet")
    return _value(_DECISION, decision)
