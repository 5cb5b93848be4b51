"""Messages of the Kubernetes API: their fields, numbers, types, and names in JSON.

Place in the flow: `runtime` builds descriptors from `package`, `codec` its plans from `fields`, and
`envelope` finds the message of a kind by `message_of`. The data are facts of Kubernetes v1.36, in
``messages.json.gz`` next to this module; one package is decoded when it is first asked for. What
only 1.37 serves is added to its packages. The messages of groups, in ``groups_of_1_37.json``, are
those of kubernetes v1.37 ``staging/src/k8s.io/api/scheduling/v1beta1/generated.proto``; v1alpha3
has the same. The messages of DeviceTaintRule are those of v1beta2.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final, Literal

import msgspec

META: Final = "k8s.io.apimachinery.pkg.apis.meta.v1"
RUNTIME: Final = "k8s.io.apimachinery.pkg.runtime"

SCALARS: Final = frozenset({"string", "bytes", "bool", "int32", "int64", "double"})
"""Types that are no messages."""

_CORE_VERSION: Final = "v1"
_RULES: Final = "k8s.io.api.resource.v1"
_GROUPS: Final = ("k8s.io.api.scheduling.v1beta1", "k8s.io.api.scheduling.v1alpha3")
_RULE_MESSAGES: Final = ("DeviceTaintRule", "DeviceTaintSelector")
_VERSIONS_OF_1_37: Final = {
    "scheduling.k8s.io/v1beta1": _GROUPS[0],
    "scheduling.k8s.io/v1alpha3": _GROUPS[1],
}
# Kinds that every group version has: apimachinery v1.36 meta/v1 register.go.
_EVERYWHERE: Final = frozenset({"DeleteOptions", "Status", "WatchEvent"})
# Kinds of meta/v1 that are written with version v1, or without a version, such as /api.
_UNVERSIONED: Final = frozenset({"APIGroup", "APIGroupList", "APIResourceList", "APIVersions"})


class Field(msgspec.Struct, frozen=True, array_like=True):
    """One field of a message.

    Parameters
    ----------
    number
        Number on the wire.
    name
        Name in JSON.
    type
        A scalar type, a message of the same package, ``.package.Message``, or
        ``map<string,TYPE>``.
    how
        ``r``: a list. ``m``: a map. ``i``: a message whose fields are in the JSON object around it.
        ``p``: a pointer in Go; an absent value differs from zero. ``v``: a Go value that JSON omits
        when it is zero. ``z``: a Go value that JSON always writes.
    wire_name
        Name in the generated.proto file, where it differs.
    """

    number: int
    name: str
    type: str
    how: Literal["r", "m", "i", "p", "v", "z"]
    wire_name: str = ""


class _Packed(msgspec.Struct, frozen=True):
    packages: dict[str, msgspec.Raw]
    versions: dict[str, str]


Package = Mapping[str, tuple[Field, ...]]
"""Fields of each message of a package, in the order of their numbers."""


@cache
def _packed() -> _Packed:
    data = files(__package__).joinpath("messages.json.gz").read_bytes()
    return msgspec.json.decode(gzip.decompress(data), type=_Packed)


def packages() -> tuple[str, ...]:
    """Return the names of all packages, sorted."""
    return tuple(sorted({*_packed().packages, *_GROUPS}))


def messages_of_1_37(package_name: str) -> Package:
    """Return the messages that 1.37 adds to a package."""
    if package_name in _GROUPS:
        data = files(__package__).joinpath("groups_of_1_37.json").read_bytes()
        return msgspec.json.decode(data, type=dict[str, tuple[Field, ...]])
    if package_name != _RULES:
        return {}
    older = package("k8s.io.api.resource.v1beta2")
    return {name: older[name] for name in older if name.startswith(_RULE_MESSAGES)}


@cache
def package(name: str) -> Package:
    """Return the messages of a package.

    Raises
    ------
    KeyError
        The package is unknown.
    """
    newer, packed = messages_of_1_37(name), _packed().packages
    if newer and name not in packed:
        return newer
    older = msgspec.json.decode(packed[name], type=dict[str, tuple[Field, ...]])
    return {**older, **newer}


def fields(message: str) -> tuple[Field, ...]:
    """Return the fields of a message, given its full name.

    Raises
    ------
    KeyError
        The message is unknown.
    """
    package_name, _, name = message.rpartition(".")
    return package(package_name)[name]


def message_of(api_version: str, kind: str) -> str | None:
    """Return the full name of the message of a kind; None for a kind without a protobuf form.

    Nothing is cached by the arguments, because clients choose them.
    """
    home = _packed().versions.get(api_version) or _VERSIONS_OF_1_37.get(api_version)
    if home is not None and kind in package(home):
        return f"{home}.{kind}"
    if kind in _EVERYWHERE and (home is not None or kind == "DeleteOptions"):
        return f"{META}.{kind}"
    if kind in _UNVERSIONED and api_version in ("", _CORE_VERSION):
        return f"{META}.{kind}"
    return None


def full_name(type_name: str, package_name: str) -> str:
    """Return the full name of the message that a field of a package refers to."""
    if type_name.startswith("."):
        return type_name[1:]
    return f"{package_name}.{type_name}"


def value_type(field: Field) -> str:
    """Return the type of a field's values: of the entries of a map, of the elements of a list."""
    if field.how == "m":
        return field.type.removeprefix("map<string,").removesuffix(">")
    return field.type
