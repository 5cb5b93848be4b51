"""Rules of valid names and of the meaning of resource names; pure text rules.

The ``*_faults`` functions return the faults, in the API server's words, or an empty list.

Mirrors kubernetes v1.36 ``apimachinery/pkg/util/validation`` and
``pkg/apis/core/v1/helper/helpers.go``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"

_NATIVE_DOMAIN: Final = "kubernetes.io/"
_HUGEPAGES: Final = "hugepages-"
_ATTACHABLE: Final = "attachable-volumes-"
_QUOTA: Final = "requests."

DNS_LABEL_LENGTH_MAX: Final = 63
"""Characters of a DNS label, of a label's value, and of a qualified name without its prefix."""
_SUBDOMAIN_LENGTH_MAX: Final = 253

_QUALIFIED: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = rf"({_QUALIFIED})?"
_DNS_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN: Final = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_SEARCH_LABEL: Final = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH_DOMAIN: Final = rf"{_SEARCH_LABEL}(\.{_SEARCH_LABEL})*"
_C_IDENTIFIER: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_RE_C_IDENTIFIER: Final = re.compile(_C_IDENTIFIER)
_RE_QUALIFIED: Final = re.compile(_QUALIFIED)
_RE_LABEL_VALUE: Final = re.compile(_LABEL_VALUE)
_RE_DNS_LABEL: Final = re.compile(_DNS_LABEL)
_RE_DNS_SUBDOMAIN: Final = re.compile(_DNS_SUBDOMAIN)
_RE_SEARCH_DOMAIN: Final = re.compile(_SEARCH_DOMAIN)


def is_native_resource(name: str) -> bool:
    """Whether Kubernetes itself defines the resource: no slash, or within ``kubernetes.io/``."""
    return "/" not in name or _NATIVE_DOMAIN in name


@lru_cache(maxsize=4096)
def is_extended_resource(name: str) -> bool:
    """Whether the name is an extended resource such as ``example.com/gpu``."""
    if is_native_resource(name) or name.startswith(_QUOTA):
        return False
    return not qualified_name_faults(_QUOTA + name)


def is_hugepages_resource(name: str) -> bool:
    """Whether the name is ``hugepages-<size>``."""
    return name.startswith(_HUGEPAGES)


def is_attachable_volumes_resource(name: str) -> bool:
    """Whether the name is a volume limit of the older form, ``attachable-volumes-<plugin>``."""
    return name.startswith(_ATTACHABLE)


def is_scalar_resource(name: str) -> bool:
    """Whether the scheduler counts the resource in whole units next to the built-in four."""
    return (
        is_hugepages_resource(name)
        or _NATIVE_DOMAIN in name
        or is_attachable_volumes_resource(name)
        or is_extended_resource(name)
    )


def is_scheduling_resource(name: str) -> bool:
    """Whether the scheduler keeps the resource; unknown names are dropped silently.

    ``pods`` is kept too: it is a node's limit, never something a pod requests.
    """
    return name in {CPU, MEMORY, EPHEMERAL_STORAGE, PODS} or is_scalar_resource(name)


def is_pod_level_resource(name: str) -> bool:
    """Whether the resource may be set for the pod as a whole."""
    return name in {CPU, MEMORY} or is_hugepages_resource(name)


def qualified_name_faults(name: str) -> list[str]:
    """Check a label key, annotation key or resource name: ``[dns.prefix/]name``."""
    prefix, slash, last = name.rpartition("/")
    if "/" in prefix:
        return [
            "a qualified name "
            + _regex_fault(
                "must consist of alphanumeric characters, '-', '_' or '.', and must start and "
                "end with an alphanumeric character",
                _QUALIFIED,
                ("MyName", "my.name", "123-abc"),
            )
            + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    faults = []
    if slash:
        if not prefix:
            faults.append("prefix part must be non-empty")
        else:
            faults += [f"prefix part {fault}" for fault in dns_subdomain_faults(prefix)]
    if not last:
        faults.append("name part must be non-empty")
    elif len(last) > DNS_LABEL_LENGTH_MAX:
        faults.append(f"name part {_length_fault(DNS_LABEL_LENGTH_MAX)}")
    if not _RE_QUALIFIED.fullmatch(last):
        faults.append(
            "name part "
            + _regex_fault(
                "must consist of alphanumeric characters, '-', '_' or '.', and must start and "
                "end with an alphanumeric character",
                _QUALIFIED,
                ("MyName", "my.name", "123-abc"),
            )
        )
    return faults


def label_value_faults(text: str) -> list[str]:
    """Check the value of a label; empty is valid."""
    faults = []
    if len(text) > DNS_LABEL_LENGTH_MAX:
        faults.append(_length_fault(DNS_LABEL_LENGTH_MAX))
    if not _RE_LABEL_VALUE.fullmatch(text):
        faults.append(
            _regex_fault(
                "a valid label must be an empty string or consist of alphanumeric characters, "
                "'-', '_' or '.', and must start and end with an alphanumeric character",
                _LABEL_VALUE,
                ("MyValue", "my_value", "12345"),
            )
        )
    return faults


def dns_label_faults(text: str) -> list[str]:
    """Check one DNS label (RFC 1123), the form of namespace and container names."""
    faults = []
    if len(text) > DNS_LABEL_LENGTH_MAX:
        faults.append(_length_fault(DNS_LABEL_LENGTH_MAX))
    if not _RE_DNS_LABEL.fullmatch(text):
        faults.append(
            _regex_fault(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters "
                "or '-', and must start and end with an alphanumeric character",
                _DNS_LABEL,
                ("my-name", "123-abc"),
            )
        )
    return faults


def dns_subdomain_faults(text: str) -> list[str]:
    """Check a DNS subdomain (RFC 1123), the form of most object names."""
    faults = []
    if len(text) > _SUBDOMAIN_LENGTH_MAX:
        faults.append(_length_fault(_SUBDOMAIN_LENGTH_MAX))
    if not _RE_DNS_SUBDOMAIN.fullmatch(text):
        faults.append(
            _regex_fault(
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                "characters, '-' or '.', and must start and end with an alphanumeric character",
                _DNS_SUBDOMAIN,
                ("example.com",),
            )
        )
    return faults


def search_domain_faults(text: str) -> list[str]:
    """Check a domain of a DNS search list, a subdomain whose labels may have underscores."""
    faults = []
    if len(text) > _SUBDOMAIN_LENGTH_MAX:
        faults.append(_length_fault(_SUBDOMAIN_LENGTH_MAX))
    if not _RE_SEARCH_DOMAIN.fullmatch(text):
        faults.append(
            _regex_fault(
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                "characters, '_', '-' or '.', and must start and end with an alphanumeric "
                "character",
                _SEARCH_DOMAIN,
                ("example.com",),
            )
        )
    return faults


def c_identifier_faults(text: str) -> list[str]:
    """Check an identifier as in C, the form of the names of devices' attributes."""
    if _RE_C_IDENTIFIER.fullmatch(text):
        return []
    return [
        _regex_fault(
            "a valid C identifier must start with alphabetic character or '_', followed by a "
            "string of alphanumeric characters or '_'",
            _C_IDENTIFIER,
            ("my_name", "MY_NAME", "MyName"),
        )
    ]


def _length_fault(limit: int) -> str:
    return f"must be no more than {limit} characters"


def _regex_fault(rule: str, regex: str, examples: tuple[str, ...]) -> str:
    """Append examples and the expression to a rule, spaced exactly as the API server does."""
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{regex}')"
