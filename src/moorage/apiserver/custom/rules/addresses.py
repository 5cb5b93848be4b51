"""IP addresses and networks in CEL: the functions that Kubernetes adds for them.

Place in the flow: part of `functions`. Mirrors kubernetes v1.36 apiserver pkg/cel/library ``ip.go``
and ``cidr.go``. CEL holds both as bytes: ``i`` or ``n``, and the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv6Address,
    IPv6Interface,
    ip_address,
    ip_interface,
)
from typing import Final

from moorage.api.cel_functions import CelFunction

TEXT_OF: Final = "__addressText"
"""Replacement for ``string()`` of an address, which the runtime would apply to the bytes."""

_Address = IPv4Address | IPv6Address
_Network = IPv4Interface | IPv6Interface
_PREFIX: Final = re.compile(r"/(0|[1-9][0-9]{0,2})")


def address_functions() -> Iterator[CelFunction]:
    """Yield every function of addresses and networks."""
    yield CelFunction("ip", ("STRING",), "BYTES", False, lambda text: _carried(_address(text)))
    yield CelFunction("isIP", ("STRING",), "BOOL", False, _succeeds(_address))
    yield CelFunction(
        "ip.isCanonical", ("STRING",), "BOOL", False, lambda text: str(_address(text)) == text
    )
    yield CelFunction("family", ("BYTES",), "INT", True, lambda ip: _read(ip).version)
    yield CelFunction(
        "isUnspecified", ("BYTES",), "BOOL", True, lambda ip: _read(ip).is_unspecified
    )
    yield CelFunction("isLoopback", ("BYTES",), "BOOL", True, lambda ip: _read(ip).is_loopback)
    yield CelFunction(
        "isLinkLocalUnicast", ("BYTES",), "BOOL", True, lambda ip: _read(ip).is_link_local
    )
    yield CelFunction("isLinkLocalMulticast", ("BYTES",), "BOOL", True, _is_link_local_multicast)
    yield CelFunction("isGlobalUnicast", ("BYTES",), "BOOL", True, _is_global_unicast)
    yield CelFunction("cidr", ("STRING",), "BYTES", False, lambda text: _carried(_network(text)))
    yield CelFunction("isCIDR", ("STRING",), "BOOL", False, _succeeds(_network))
    yield CelFunction("ip", ("BYTES",), "BYTES", True, lambda net: _carried(_read_net(net).ip))
    yield CelFunction("masked", ("BYTES",), "BYTES", True, _masked)
    yield CelFunction(
        "prefixLength", ("BYTES",), "INT", True, lambda net: _read_net(net).network.prefixlen
    )
    yield CelFunction(
        "containsIP", ("BYTES", "BYTES"), "BOOL", True, lambda net, ip: _has(net, _read(ip))
    )
    yield CelFunction(
        "containsIP", ("BYTES", "STRING"), "BOOL", True, lambda net, ip: _has(net, _address(ip))
    )
    yield CelFunction(
        "containsCIDR", ("BYTES", "BYTES"), "BOOL", True, lambda a, b: _covers(a, _read_net(b))
    )
    yield CelFunction(
        "containsCIDR", ("BYTES", "STRING"), "BOOL", True, lambda a, b: _covers(a, _network(b))
    )
    yield CelFunction(TEXT_OF, ("BYTES",), "STRING", False, _text)


def _address(text: str) -> _Address:
    try:
        address = ip_address(text)
    except ValueError as error:
        raise ValueError(
            f'IP Address "{text}" parse error during conversion from string: {error}'
        ) from None
    if "%" in text:
        raise ValueError(f'IP address "{text}" with zone value is not allowed')
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise ValueError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return address


def _network(text: str) -> _Network:
    address, slash, prefix = text.partition("/")
    why = f'network address parse error during conversion from string: "{text}"'
    if not _PREFIX.fullmatch(slash + prefix):
        raise ValueError(why)
    try:
        _address(address)
        return ip_interface(text)
    except ValueError as error:
        raise ValueError(f"{why}: {error}") from None


def _succeeds(read: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return check


def _carried(value: _Address | _Network) -> bytes:
    is_network = isinstance(value, IPv4Interface | IPv6Interface)
    return (b"n" if is_network else b"i") + str(value).encode()


def _read(value: bytes) -> _Address:
    if value[:1] != b"i":
        raise TypeError("no such overload")
    return ip_address(value[1:].decode())


def _read_net(value: bytes) -> _Network:
    if value[:1] != b"n":
        raise TypeError("no such overload")
    return ip_interface(value[1:].decode())


def _text(value: bytes) -> str:
    if value[:1] not in (b"i", b"n"):
        raise TypeError("no such overload")
    return value[1:].decode()


def _masked(value: bytes) -> bytes:
    return b"n" + str(_read_net(value).network).encode()


def _is_link_local_multicast(value: bytes) -> bool:
    address = _read(value)
    if isinstance(address, IPv4Address):
        return address.packed[:3] == b"\xe0\x00\x00"
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


def _is_global_unicast(value: bytes) -> bool:
    address = _read(value)
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or address == IPv4Address("255.255.255.255")
    )


def _has(network: bytes, address: _Address) -> bool:
    return address in _read_net(network).network


def _covers(network: bytes, other: _Network) -> bool:
    outer, inner = _read_net(network).network, other.network
    return (
        outer.version == inner.version and outer.prefixlen <= inner.prefixlen and other.ip in outer
    )
