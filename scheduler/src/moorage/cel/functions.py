"""The CEL functions that Kubernetes adds for quantities and versions.

Selectors of devices (`moorage.plugins.claims.devices.cel`) and rules of custom resources
(`moorage_sandbox.rules`) use the functions. The table does not depend on a CEL runtime.

CEL has no type for quantities or versions. Both are carried as bytes: ``q`` and the nano units,
``v`` and the version. Equal quantities are equal bytes, and so are equal versions.

Rules mirrored: kubernetes v1.36 ``apiserver/pkg/cel/library`` ``quantity.go`` and ``semverlib.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from moorage.api.quantity import NANO, parse_quantity
from moorage.api.semver import Version, normalized, parse_version

_INT64: Final = 2**63


class CelFunction(NamedTuple):
    """One overload; types have the names of the CEL runtime, and "LIST" is a list of anything."""

    name: str
    parameters: tuple[str, ...]
    returns: str
    is_member: bool
    implementation: Callable[..., Any]


def quantity_value(nano: int) -> bytes:
    """Return nano units as CEL carries a quantity."""
    return b"q%d" % nano


def version_value(version: Version) -> bytes:
    """Return a version as CEL carries it."""
    return b"v" + version.text.encode()


def cel_functions() -> Iterator[CelFunction]:
    """Yield every function of quantities and versions."""
    yield CelFunction("quantity", ("STRING",), "BYTES", False, _quantity)
    yield CelFunction("isQuantity", ("STRING",), "BOOL", False, _is_quantity)
    yield CelFunction("sign", ("BYTES",), "INT", True, lambda q: _order(_nano(q), 0))
    yield CelFunction("isInteger", ("BYTES",), "BOOL", True, _is_integer)
    yield CelFunction("asInteger", ("BYTES",), "INT", True, _as_integer)
    yield CelFunction("asApproximateFloat", ("BYTES",), "DOUBLE", True, lambda q: _nano(q) / NANO)
    yield CelFunction("add", ("BYTES", "BYTES"), "BYTES", True, _add)
    yield CelFunction("add", ("BYTES", "INT"), "BYTES", True, _add_integer)
    yield CelFunction("sub", ("BYTES", "BYTES"), "BYTES", True, _subtract)
    yield CelFunction("sub", ("BYTES", "INT"), "BYTES", True, lambda q, n: _add_integer(q, -n))
    yield CelFunction("semver", ("STRING",), "BYTES", False, _semver)
    yield CelFunction("semver", ("STRING", "BOOL"), "BYTES", False, _semver)
    yield CelFunction("isSemver", ("STRING",), "BOOL", False, _is_semver)
    yield CelFunction("isSemver", ("STRING", "BOOL"), "BOOL", False, _is_semver)
    yield CelFunction("major", ("BYTES",), "INT", True, lambda v: _version(v).major)
    yield CelFunction("minor", ("BYTES",), "INT", True, lambda v: _version(v).minor)
    yield CelFunction("patch", ("BYTES",), "INT", True, lambda v: _version(v).patch)
    yield CelFunction("compareTo", ("BYTES", "BYTES"), "INT", True, _compare)
    yield CelFunction(
        "isLessThan", ("BYTES", "BYTES"), "BOOL", True, lambda a, b: _compare(a, b) < 0
    )
    yield CelFunction(
        "isGreaterThan", ("BYTES", "BYTES"), "BOOL", True, lambda a, b: _compare(a, b) > 0
    )


def _quantity(text: str) -> bytes:
    return quantity_value(parse_quantity(text))


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except ValueError:
        return False
    return True


def _is_integer(value: bytes) -> bool:
    nano = _nano(value)
    return nano % NANO == 0 and -_INT64 <= nano // NANO < _INT64


def _as_integer(value: bytes) -> int:
    if not _is_integer(value):
        raise ValueError("cannot convert value to integer")
    return _nano(value) // NANO


def _add(left: bytes, right: bytes) -> bytes:
    return quantity_value(_nano(left) + _nano(right))


def _add_integer(left: bytes, right: int) -> bytes:
    return quantity_value(_nano(left) + right * NANO)


def _subtract(left: bytes, right: bytes) -> bytes:
    return quantity_value(_nano(left) - _nano(right))


def _semver(text: str, normalize: bool = False) -> bytes:
    return version_value(parse_version(normalized(text) if normalize else text))


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _semver(text, normalize)
    except ValueError:
        return False
    return True


def _compare(left: bytes, right: bytes) -> int:
    if left[:1] == b"q":
        return _order(_nano(left), _nano(right))
    return _order(_version(left).precedence, _version(right).precedence)


def _order(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def _nano(value: bytes) -> int:
    if value[:1] != b"q":
        raise ValueError("no such overload")
    return int(value[1:])


def _version(value: bytes) -> Version:
    if value[:1] != b"v":
        raise ValueError("no such overload")
    return parse_version(value[1:].decode())
