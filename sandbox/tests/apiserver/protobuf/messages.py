"""Random JSON forms of a message, made from the facts of its fields."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

from moorage.base.clock import NS_PER_SECOND, rfc3339, rfc3339_micro
from moorage.base.rng import Random
from moorage_sandbox.apiserver.protobuf import facts
from moorage_sandbox.apiserver.protobuf.facts import Field

_DEPTH_MAX: Final = 3  # messages within each other; deeper ones are left out where they may be
_TEXTS: Final = ("", "a", "key", "ünï", "日本", "🚢", "a/b.c-d", '"quoted"\n', "x" * 200)
_DURATIONS: Final = ("0s", "1.5s", "250ms", "-3µs", "7ns", "1m30s", "1h0m0s", "26h3m0.000000001s")
_QUANTITIES: Final = ("0", "1500m", "4Gi", "1e3", "-2")
_SCHEMAS: Final = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions."
_Make = Callable[[Random], Any]


def _whole(bits: int) -> _Make:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return lambda rng: rng.choice((0, 1, -1, low, high, rng.randint(low, high)))


def _text(rng: Random) -> str:
    return rng.choice(_TEXTS)


def _double(rng: Random) -> float | int:
    return rng.choice((0, 5, -3, 0.5, -1e-9, 1e300, 2**60))


def _bytes(rng: Random) -> str:
    return base64.b64encode(rng.randbytes(rng.randrange(6))).decode()


def _ns(rng: Random) -> int:
    """Return a time between the years 1 and 9999, but for its first second, Go's zero time."""
    seconds = rng.choice((0, 1, -1, 253_402_300_799, rng.randint(-62_135_596_799, 2**37)))
    return seconds * NS_PER_SECOND + 1000 * rng.randrange(1_000_000)


def _json(rng: Random, depth: int = 2) -> Any:
    kind = rng.randrange(6 if depth else 4)
    if kind == 4:
        return [_json(rng, depth - 1) for _ in range(rng.randrange(3))]
    if kind == 5:
        return _object(rng, depth - 1)
    return rng.choice((True, False, 0, 2**60, -1.5, _text(rng)))


def _object(rng: Random, depth: int = 2) -> dict[str, Any]:
    return {_text(rng): _json(rng, depth) for _ in range(rng.randrange(3))}


def _texts(rng: Random) -> list[str]:
    return [_text(rng) for _ in range(rng.randrange(1, 3))]


_SCALARS: Final[Mapping[str, _Make]] = {
    "string": _text,
    "bool": lambda rng: rng.random() < 0.5,
    "int32": _whole(32),
    "int64": _whole(64),
    "double": _double,
    "bytes": _bytes,
}
_SPECIAL: Final[Mapping[str, _Make]] = {
    "k8s.io.apimachinery.pkg.api.resource.Quantity": lambda rng: rng.choice(_QUANTITIES),
    f"{facts.META}.Time": lambda rng: rfc3339(_ns(rng)),
    f"{facts.META}.MicroTime": lambda rng: rfc3339_micro(_ns(rng)),
    f"{facts.META}.Duration": lambda rng: rng.choice(_DURATIONS),
    f"{facts.META}.FieldsV1": _object,
    f"{facts.META}.Verbs": _texts,
    f"{facts.RUNTIME}.RawExtension": _object,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": lambda rng: rng.choice((_whole(32), _text))(
        rng
    ),
    **{f"{_SCHEMAS}{version}.JSON": _json for version in ("v1", "v1beta1")},
}


def random_object(message: str, rng: Random, depth: int = _DEPTH_MAX) -> Any:
    """Return a JSON form of a message that a Go client could send.

    Such a form says each zero that Go's JSON always writes, and none that Go's JSON omits.

    Parameters
    ----------
    message
        Full name of the message.
    rng
        Chooses fields and values.
    depth
        How many more messages may stand within each other.
    """
    if message in _SPECIAL:
        return _SPECIAL[message](rng)
    package, _, name = message.rpartition(".")
    if name == "ExtraValue":
        return _texts(rng)
    if name.startswith("JSONSchemaPropsOr"):
        return _choice(f"{package}.JSONSchemaProps", name, rng, depth)
    obj: dict[str, Any] = {}
    for field in facts.fields(message):
        if field.how == "i":
            obj |= random_object(facts.full_name(field.type, package), rng, depth)
        elif _is_always(field) or (_fits(field, package, depth) and rng.random() < 0.4):
            obj[field.name] = _value(field, package, rng, depth)
    return {name: value for name, value in obj.items() if value is not None}


def _choice(schema: str, name: str, rng: Random, depth: int) -> Any:
    """Return a schema, or the simpler value that may stand in its place."""
    if rng.random() < 0.5:
        return random_object(schema, rng, depth)
    if name == "JSONSchemaPropsOrBool":
        return rng.random() < 0.5
    if name == "JSONSchemaPropsOrArray":
        return [random_object(schema, rng, depth)]
    return _texts(rng)


def _is_always(field: Field) -> bool:
    """Whether Go's JSON always has the field, as anything but null."""
    return field.how == "z" and field.type != "bytes" and not field.type.endswith("Time")


def _fits(field: Field, package: str, depth: int) -> bool:
    """Whether a field may be given without going deeper than allowed."""
    type_name = facts.value_type(field)
    return depth > 0 or type_name in _SCALARS or facts.full_name(type_name, package) in _SPECIAL


def _value(field: Field, package: str, rng: Random, depth: int) -> Any:
    type_name = facts.value_type(field)
    scalar = _SCALARS.get(type_name)

    def one() -> Any:
        if scalar is not None:
            return scalar(rng)
        return random_object(facts.full_name(type_name, package), rng, depth - 1)

    if field.how == "r":
        return [one() for _ in range(rng.randrange(1, 3))]
    if field.how == "m":
        return {_text(rng): one() for _ in range(rng.randrange(1, 3))}
    value = one()
    # Go's JSON omits such a zero.
    return None if field.how == "v" and scalar is not None and not value else value
