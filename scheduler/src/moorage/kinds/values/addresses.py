"""Rules of IP addresses and of networks, as fields have them that are older than strict rules.

Place in the flow: pods, nodes, services and policies use them. Mirrors kubernetes v1.36
apimachinery pkg/util/validation (IsValidIPForLegacyField, IsValidCIDRForLegacyField), which reads
numbers of IPv4 with leading zeros.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from moorage.kinds.kind import FieldError, invalid

NO_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
NO_INTERFACE_ADDRESS = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
_LENGTH_IPV4, _LENGTH_IPV6 = 32, 128
NO_NETWORK = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_LEADING_ZEROS = re.compile(r"(?<![0-9a-fA-F:.])0+(?=\d)|(?<=\.)0+(?=\d)")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def address_of(text: str) -> Address | None:
    """Return an address, or None where the text is none."""
    try:
        return None if "%" in text else ipaddress.ip_address(_LEADING_ZEROS.sub("", text))
    except ValueError:
        return None


def network_of(text: str) -> Network | None:
    """Return a network, or None where the text is none; bits of a host are accepted."""
    if "/" not in text or "%" in text:
        return None
    try:
        return ipaddress.ip_network(_LEADING_ZEROS.sub("", text), strict=False)
    except ValueError:
        return None


def check_interface_address(text: str, where: str) -> list[FieldError]:
    """Check an address with the length of its network, in canonical form."""
    network = network_of(text)
    address = address_of(text.partition("/")[0])
    if network is None or address is None:
        return [invalid(where, text, NO_INTERFACE_ADDRESS)]
    length = network.prefixlen
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    if mapped is not None and length > _LENGTH_IPV4:
        address, length = mapped, length - (_LENGTH_IPV6 - _LENGTH_IPV4)
    canonical = f"{mapped or address}/{length}"
    if text != canonical:
        return [invalid(where, text, f'must be in canonical form ("{canonical}")')]
    return []


def check_address(value: Any, where: str) -> list[FieldError]:
    """Check an address; a missing one is none."""
    text = value or ""
    return [] if address_of(text) is not None else [invalid(where, text, NO_ADDRESS)]


def check_network(value: Any, where: str) -> list[FieldError]:
    """Check a network; a missing one is none."""
    text = value or ""
    return [] if network_of(text) is not None else [invalid(where, text, NO_NETWORK)]
