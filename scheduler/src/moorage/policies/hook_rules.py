"""Rules about the rules and the address of a webhook.

Place in the flow: the kinds of webhook configurations are validated here, and so are definitions of
custom resources that are converted by a webhook. Mirrors kubernetes v1.36
pkg/apis/admissionregistration/validation, and apiserver pkg/util/webhook/validation.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from moorage.api.names import dns_subdomain_faults
from moorage.kinds.fields import Rule, one_of, rules
from moorage.kinds.kind import FieldError, invalid, not_supported, required
from moorage.kinds.tree import Json, number, strings, text
from moorage.kinds.values.name_rules import port_number

REVIEW_VERSIONS: Final = ("v1", "v1beta1")
"""The versions of reviews that the API server writes and reads."""
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_FORM: Final = "; desired format: https://host[/path]"


def _alone(what: str, *, empty: bool = False) -> Rule:
    """Return the rule of a list in which a wildcard stands alone; ``empty`` allows empty texts."""

    def check(values: Sequence[str] | None, where: str) -> list[FieldError]:
        if not values:
            return [required(where, "")]
        errors = []
        if len(values) > 1 and "*" in values:
            detail = f"if '*' is present, must not specify other {what}"
            errors.append(invalid(where, list(values), detail))
        if not empty:
            errors += [required(f"{where}[{at}]", "") for at, each in enumerate(values) if not each]
        return errors

    return check


def _operations(values: Sequence[str] | None, where: str) -> list[FieldError]:
    errors = _alone("operations", empty=True)(values, where)
    return errors + [
        not_supported(f"{where}[{at}]", each, _OPERATIONS)
        for at, each in enumerate(values or ())
        if each not in _OPERATIONS
    ]


def _resources(values: Sequence[str] | None, where: str) -> list[FieldError]:
    """Refuse resources that another one of the list stands for already."""
    if not values:
        return [required(where, "")]
    errors: list[FieldError] = []
    # Resources with all subresources, and subresources of all resources, so far.
    whole: Counter[str] = Counter()
    everywhere: Counter[str] = Counter()
    for at, each in enumerate(values):
        field = f"{where}[{at}]"
        if not each:
            errors.append(required(field, ""))
        resource, slash, part = each.partition("/")
        if not slash:
            continue
        for known, name, shown in (
            (whole, resource, f"{resource}/*"),
            (everywhere, part, f"*/{part}"),
        ):
            if known[name]:
                detail = f"if '{shown}' is present, must not specify {each}"
                errors.append(invalid(field, each, detail))
        whole[resource] += part == "*"
        everywhere[part] += resource == "*"
    if len(values) > 1 and "*/*" in values:
        detail = "if '*/*' is present, must not specify other resources"
        errors.append(invalid(where, list(values), detail))
    plain = [each for each in values if each and "/" not in each]
    if "*" in plain and plain[-1] != "*":
        detail = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(where, list(values), detail))
    return errors


hook_rule = rules(
    ("operations", _operations),
    ("apiGroups", _alone("API groups", empty=True)),
    ("apiVersions", _alone("API versions")),
    ("resources", _resources),
    ("scope", one_of("*", "Cluster", "Namespaced")),
)
"""The rule of a ``rules[]`` of a webhook."""


def check_client(client: Json | None, where: str) -> list[FieldError]:
    """Check that a webhook has one address, and that it can be called there."""
    client = client or {}
    ways = [key for key in ("url", "service") if client.get(key) is not None]
    if len(ways) != 1:
        return [required(where, "exactly one of url or service is required")]
    if ways == ["url"]:
        return _url(text(client, "url"), f"{where}.url")
    return _service(client["service"], f"{where}.service")


def _url(url: str, where: str) -> list[FieldError]:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        return [required(where, f"url must be a valid URL: {error}{_FORM}")]
    errors = []
    if parts.scheme != "https":
        detail = f"'https' is the only allowed URL scheme{_FORM}"
        errors.append(invalid(where, parts.scheme, detail))
    if not parts.netloc:
        errors.append(invalid(where, "", f"host must be provided{_FORM}"))
    if parts.username is not None:
        detail = "user information is not permitted in the URL"
        errors.append(invalid(where, parts.username, detail))
    if parts.fragment:
        errors.append(invalid(where, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        detail = "query parameters are not permitted in the URL"
        errors.append(invalid(where, parts.query, detail))
    return errors


def _service(service: Any, where: str) -> list[FieldError]:
    errors = [
        required(f"{where}.{key}", f"service {key} is required")
        for key in ("name", "namespace")
        if not text(service, key)
    ]
    port, path = number(service, "port"), text(service, "path")
    if faults := port_number(port):
        detail = f"port is not valid: {', '.join(faults)}"
        errors.append(invalid(f"{where}.port", port, detail))
    return errors + (_path(path, f"{where}.path") if path not in ("", "/") else [])


def _path(path: str, where: str) -> list[FieldError]:
    if path == "//":
        return [invalid(where, path, "segment[0] may not be empty")]
    errors = [] if path.startswith("/") else [invalid(where, path, "must start with a '/'")]
    for at, step in enumerate(path[1:].removesuffix("/").split("/")):
        faults = dns_subdomain_faults(step) if step else []
        details = [f"segment[{at}]: {fault}" for fault in faults]
        details += [] if step else [f"segment[{at}] may not be empty"]
        errors += [invalid(where, path, detail) for detail in details]
    return errors


def check_review_versions(versions: Any, where: str) -> list[FieldError]:
    """Check that one of the versions of a review is known here."""
    known = ", ".join(REVIEW_VERSIONS)
    listed = strings({"versions": versions}, "versions")
    if not listed:
        return [required(where, f"must specify one of {known}")]
    errors = [
        invalid(f"{where}[{at}]", each, "duplicate version")
        for at, each in enumerate(listed)
        if each in listed[:at]
    ]
    if not set(listed) & set(REVIEW_VERSIONS):
        detail = f"must include at least one of {known}"
        errors.append(invalid(where, listed, detail))
    return errors
