"""The values of ``format`` that custom resources are checked against.

Place in the flow: used by `validation`. The list is that of kubernetes v1.36
apiextensions-apiserver pkg/apiserver/validation/formats.go, as far as clusters use it. A format
that is not in the list accepts every value, as upstream.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from moorage.base.clock import parse_rfc3339

_HOSTNAME = re.compile(
    r"([a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)(\.[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)*"
)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_UUID = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
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


def _network(text: str) -> Any:
    if "/" not in text:
        raise ValueError(text)
    return ipaddress.ip_network(text, strict=False)


_TEXT: Mapping[str, Callable[[str], bool]] = {
    "byte": _is_base64,
    "cidr": _succeeds(_network),
    "date": lambda text: bool(_DATE.fullmatch(text)),
    "date-time": _succeeds(parse_rfc3339),
    "datetime": _succeeds(parse_rfc3339),
    "duration": lambda text: bool(_DURATION.fullmatch(text)),
    "email": lambda text: bool(_EMAIL.fullmatch(text)),
    "hostname": lambda text: len(text) <= 255 and bool(_HOSTNAME.fullmatch(text)),
    "ipv4": _succeeds(ipaddress.IPv4Address),
    "ipv6": _succeeds(ipaddress.IPv6Address),
    "mac": lambda text: bool(_MAC.fullmatch(text)),
    "uri": _is_uri,
    "uuid": lambda text: bool(_UUID.fullmatch(text)),
}
_NUMBERS = {"int32": range(-(2**31), 2**31), "int64": range(-(2**63), 2**63)}


def has_format(name: str, value: Any) -> bool:
    """Whether a value has a format; true for formats that are not in the list."""
    if isinstance(value, str):
        check = _TEXT.get(name)
        return check is None or check(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return name not in _NUMBERS or value in _NUMBERS[name]
    return True
