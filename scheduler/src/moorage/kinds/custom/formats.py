"""The values of ``format`` that custom resources are checked against.

Place in the flow: used by `validation`. The list is that of kubernetes v1.36
apiextensions-apiserver pkg/apiserver/validation/formats.go. Hyphens in a format's name do not
count. A format that is not in the list accepts every value, as upstream, and so do those of books,
credit cards and some more.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from moorage.api.names import dns_label_faults, dns_subdomain_faults
from moorage.base.clock import parse_rfc3339

_HOSTNAME = re.compile(
    r"([a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)(\.[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)*"
)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_HEX = "[0-9a-f]"
_MAC = re.compile(r"(?i)([0-9a-f]{2}[:-]){5}[0-9a-f]{2}")
_DATE = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])")
_DURATION = re.compile(r"[-+]?([0-9]+(\.[0-9]+)?\s*(ns|us|µs|ms|s|m|h|d|w|[a-z]+))+|0")


def _succeeds(read: Callable[[str], Any]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            read(text)
        except (ValueError, OverflowError):
            return False
        return True

    return check


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_uri(text: str) -> bool:
    try:
        return bool(urlsplit(text).scheme)
    except ValueError:
        return False


def _like(pattern: str) -> Callable[[str], bool]:
    whole = re.compile(pattern, re.IGNORECASE)
    return lambda text: bool(whole.fullmatch(text))


def _uuid(version: str, variant: str) -> Callable[[str], bool]:
    tail = f"-?{version}{_HEX}{{3}}-?{variant}{_HEX}{{3}}-?{_HEX}{{12}}"
    return _like(f"{_HEX}{{8}}-?{_HEX}{{4}}{tail}")


def _network(text: str) -> Any:
    if "/" not in text:
        raise ValueError(text)
    return ipaddress.ip_network(text, strict=False)


_TEXT: Mapping[str, Callable[[str], bool]] = {
    "byte": _is_base64,
    "cidr": _succeeds(_network),
    "date": lambda text: bool(_DATE.fullmatch(text)),
    "datetime": _succeeds(parse_rfc3339),
    "duration": lambda text: bool(_DURATION.fullmatch(text)),
    "email": lambda text: bool(_EMAIL.fullmatch(text)),
    "hostname": lambda text: len(text) <= 255 and bool(_HOSTNAME.fullmatch(text)),
    "ipv4": _succeeds(ipaddress.IPv4Address),
    "ipv6": _succeeds(ipaddress.IPv6Address),
    "mac": lambda text: bool(_MAC.fullmatch(text)),
    "uri": _is_uri,
    "k8sshortname": lambda text: not dns_label_faults(text),
    "k8slongname": lambda text: not dns_subdomain_faults(text),
    "bsonobjectid": _like(f"{_HEX}{{24}}"),
    "hexcolor": _like(f"#?({_HEX}{{3}}){{1,2}}"),
    "ssn": _like("[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}"),
    "uuid": _uuid(_HEX, _HEX),
    "uuid3": _uuid("3", _HEX),
    "uuid4": _uuid("4", "[89ab]"),
    "uuid5": _uuid("5", "[89ab]"),
}
_ALL_ACCEPTED = frozenset(
    {"creditcard", "isbn", "isbn10", "isbn13", "password", "quantity", "rgbcolor"}
)
_NUMBERS = {"int32": range(-(2**31), 2**31), "int64": range(-(2**63), 2**63)}
_OF_TYPE = {"integer": frozenset(_NUMBERS), "number": frozenset({"float", "double"})}


def is_known(name: str, kind: str) -> bool:
    """Whether a format is one of values of this type; of text where there is no type."""
    if kind in ("", "string"):
        name = name.replace("-", "")
        return name in _TEXT or name in _ALL_ACCEPTED
    return name in _OF_TYPE.get(kind, ())


def has_format(name: str, value: Any) -> bool:
    """Whether a value has a format; true for formats that are not in the list."""
    if isinstance(value, str):
        check = _TEXT.get(name.replace("-", ""))
        return check is None or check(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return name not in _NUMBERS or value in _NUMBERS[name]
    return True
