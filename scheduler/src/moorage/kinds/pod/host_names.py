"""The rules of a pod's host name, of the names that it gives other hosts, and of its DNS.

Mirrors kubernetes v1.36 pkg/apis/core/validation/validation.go (validatePodDNSConfig,
ValidateHostAliases, and ValidatePodSpec about ``hostnameOverride``). The bounds of the lists are
in `values.list_bounds`.
"""

from __future__ import annotations

from typing import Any, Final

from moorage.api.names import dns_subdomain_faults, search_domain_faults
from moorage.kinds.fields import Rule, each, if_present, name_rule, needed, one_of, rules
from moorage.kinds.kind import FieldError, forbidden, invalid, required, too_long
from moorage.kinds.tree import Json, strings, text
from moorage.kinds.values.addresses import check_address

_SEARCH_LIST_LENGTH_MAX: Final = 2048
_HOST_NAME_LENGTH_MAX: Final = 64
_search = name_rule(search_domain_faults, empty="refused")
_host = name_rule(dns_subdomain_faults, empty="refused")


def _all(rule: Rule) -> Rule:
    """Return the rule of a list of texts, by the rule of a text; null is an empty one."""

    def check(listed: Any, where: str) -> list[FieldError]:
        return [
            error
            for index, value in enumerate(listed or ())
            for error in rule(value or "", f"{where}[{index}]")
        ]

    return check


def _domain(domain: str, where: str) -> list[FieldError]:
    """Check a domain of the search list, which may end with a dot or be nothing else."""
    return [] if domain == "." else _search(domain.removesuffix("."), where)


def _search_list(searches: Any, where: str) -> list[FieldError]:
    if len(" ".join(domain or "" for domain in searches or ())) <= _SEARCH_LIST_LENGTH_MAX:
        return []
    limit = f"{_SEARCH_LIST_LENGTH_MAX} characters (including spaces)"
    return [invalid(where, searches, f"must not have more than {limit} in the search list")]


def _some_server(spec: Json, where: str) -> list[FieldError]:
    """Refuse the policy ``None`` without a server of the pod's own."""
    if text(spec, "dnsPolicy") != "None":
        return []
    if spec.get("dnsConfig") is None:
        return [required(f"{where}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")]
    if strings(spec, "dnsConfig", "nameservers"):
        return []
    detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
    return [required(f"{where}.dnsConfig.nameservers", detail)]


def _host_name(spec: Json, where: str) -> list[FieldError]:
    name, field = spec.get("hostnameOverride"), f"{where}.hostnameOverride"
    if name is None:
        return []
    errors = _host(name, field)
    if len(name) > _HOST_NAME_LENGTH_MAX:
        errors.append(too_long(field, _HOST_NAME_LENGTH_MAX))
    for other in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(other) is True:
            errors.append(forbidden(field, f"may not be specified when `{other}` is true"))
    return errors


_dns = rules(
    ("nameservers", _all(check_address)),
    ("searches", _search_list),
    ("searches", _all(_domain)),
    ("options", each(rules(("name", needed("must not be empty"))))),
)
_alias = rules(("ip", check_address), ("hostnames", _all(_host)))
check_host_names = rules(
    (
        "dnsPolicy",
        one_of("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None", empty="accepted"),
    ),
    _some_server,
    ("dnsConfig", if_present(_dns)),
    ("hostAliases", each(_alias)),
    _host_name,
)
"""Check the DNS of a pod, its own host name, and the names that it gives other hosts."""
