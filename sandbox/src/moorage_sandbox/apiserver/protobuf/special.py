"""Messages whose JSON form is no object of their fields: quantities, times, free JSON and more.

Place in the flow: `codec` asks `SPECIAL` for each message it meets. Sources, all of Kubernetes
v1.36: apimachinery pkg/api/resource quantity_proto.go, pkg/apis/meta/v1 {time_proto, micro_time,
micro_time_proto, duration, types}.go, pkg/util/intstr, pkg/runtime extension.go;
apiextensions-apiserver pkg/apis/apiextensions/v1 marshal.go.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from moorage.base.clock import NS_PER_SECOND, parse_rfc3339, rfc3339, rfc3339_micro
from moorage.base.errors import DecodeError
from moorage_sandbox.apiserver.protobuf import facts
from moorage_sandbox.apiserver.wire.bodies import bounded_json

Parts = dict[str, Any]
"""Values of a message's fields by their names in the runtime."""

_ZERO_TIME_SECONDS: Final = -62_135_596_800  # the first second of year 1, Go's zero time
_LAST_TIME_SECONDS: Final = 253_402_300_799  # the last second of year 9999
_WHOLE_DOUBLE_MAX: Final = 1e21  # Go writes larger numbers with an exponent
_UNITS: Final = {
    "h": 3600 * NS_PER_SECOND,
    "m": 60 * NS_PER_SECOND,
    "s": NS_PER_SECOND,
    "ms": 1_000_000,
    "us": 1000,
    "µs": 1000,
    "ns": 1,
}
_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?)(ms|us|µs|ns|h|m|s)")

_write_json = msgspec.json.Encoder().encode


class Special(msgspec.Struct, frozen=True):
    """The conversion of one message.

    Parameters
    ----------
    write
        Parts of the message for a JSON value.
    read
        JSON value for a message of the runtime; None for null. Raises ValueError for a message
        without a JSON form.
    zero
        Parts of the message for an absent Go value that is no pointer.
    """

    write: Callable[[Any], Parts]
    read: Callable[[Any], Any]
    zero: Parts


def _write_quantity(value: Any) -> Parts:
    # A number is accepted wherever a quantity is.
    return {"string": value if isinstance(value, str) else f"{value:g}"}


def _read_quantity(message: Any) -> str:
    return message.string or "0"


def _write_time(value: str) -> Parts:
    seconds = parse_rfc3339(value) // NS_PER_SECOND
    return {} if seconds == _ZERO_TIME_SECONDS else {"seconds": seconds, "nanos": 0}


def _read_time(message: Any) -> str | None:
    seconds = _seconds(message)
    return None if seconds is None else rfc3339(seconds * NS_PER_SECOND)


def _write_micro_time(value: str) -> Parts:
    seconds, nanos = divmod(parse_rfc3339(value), NS_PER_SECOND)
    if seconds == _ZERO_TIME_SECONDS and not nanos:
        return {}
    return {"seconds": seconds, "nanos": nanos - nanos % 1000}


def _read_micro_time(message: Any) -> str | None:
    seconds = _seconds(message)
    if seconds is None:
        return None
    return rfc3339_micro(seconds * NS_PER_SECOND + message.nanos - message.nanos % 1000)


def _seconds(message: Any) -> int | None:
    """Return the seconds of a time since 1970; None for Go's zero time."""
    seconds = int(message.seconds)
    if seconds == _ZERO_TIME_SECONDS or not message.ListFields():
        return None
    if not _ZERO_TIME_SECONDS < seconds <= _LAST_TIME_SECONDS or abs(message.nanos) > NS_PER_SECOND:
        raise ValueError(f"{seconds} s {message.nanos} ns is outside the years 1 to 9999")
    return seconds


def _write_duration(value: str) -> Parts:
    sign, text = (-1, value[1:]) if value.startswith("-") else (1, value)
    if text == "0":
        return {"duration": 0}
    found = _DURATION.findall(text)
    if not found or "".join(number + unit for number, unit in found) != text:
        raise ValueError(f"{value!r} is no duration")
    return {"duration": sign * sum(round(float(n) * _UNITS[unit]) for n, unit in found)}


def _read_duration(message: Any) -> str:
    """Return a duration as Go prints it: 0s, 1.5s, 250ms, 1m30s, 1h0m0s."""
    ns = int(message.duration)
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    if 0 < ns < NS_PER_SECOND:
        unit = next(unit for unit in ("ms", "µs", "ns") if ns >= _UNITS[unit])
        return f"{sign}{_decimal(ns, _UNITS[unit])}{unit}"
    minutes, rest = divmod(ns, _UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, NS_PER_SECOND)}s"
    if hours:
        text = f"{hours}h{minutes}m{text}"
    elif minutes:
        text = f"{minutes}m{text}"
    return sign + text


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    digits = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)


def _write_int_or_string(value: Any) -> Parts:
    if isinstance(value, str):
        return {"type": 1, "intVal": 0, "strVal": value}
    return {"type": 0, "intVal": value, "strVal": ""}


def _read_int_or_string(message: Any) -> int | str:
    if message.type not in (0, 1):
        raise ValueError(f"impossible IntOrString.Type {message.type}")
    return str(message.strVal) if message.type else int(message.intVal)


def _free_json(name: str) -> Special:
    """Return the form of a message whose one field holds JSON as text."""

    def write(value: Any) -> Parts:
        return {} if value is None else {name: _write_json(value)}

    def read(message: Any) -> Any:
        raw = getattr(message, name)
        try:
            return bounded_json(raw) if raw else None
        except DecodeError as error:
            raise ValueError(f"{name}: {error}") from error

    return Special(write, read, {})


def _list_of_texts() -> Special:
    return Special(lambda value: {"items": value}, lambda message: list(message.items), {})


SPECIAL: Final[Mapping[str, Special]] = {
    "k8s.io.apimachinery.pkg.api.resource.Quantity": Special(
        _write_quantity, _read_quantity, {"string": "0"}
    ),
    f"{facts.META}.Time": Special(_write_time, _read_time, {}),
    f"{facts.META}.MicroTime": Special(_write_micro_time, _read_micro_time, {}),
    f"{facts.META}.Duration": Special(_write_duration, _read_duration, {"duration": 0}),
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": Special(
        _write_int_or_string, _read_int_or_string, {"type": 0, "intVal": 0, "strVal": ""}
    ),
    f"{facts.RUNTIME}.RawExtension": _free_json("raw"),
    f"{facts.META}.FieldsV1": _free_json("Raw"),
    f"{facts.META}.Verbs": _list_of_texts(),
    **{
        f"k8s.io.api.{version}.ExtraValue": _list_of_texts()
        for version in (
            "authentication.v1",
            "authentication.v1beta1",
            "authorization.v1",
            "authorization.v1beta1",
            "certificates.v1",
            "certificates.v1beta1",
        )
    },
    **{
        f"k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.{version}.JSON": _free_json("raw")
        for version in ("v1", "v1beta1")
    },
}
"""Every such message by its full name. The choices within a JSON schema are in `codec`."""


def write_bytes(value: str) -> bytes:
    """Return the bytes that JSON writes in base 64."""
    return base64.b64decode(value, validate=True)


def read_bytes(value: bytes) -> str:
    """Return bytes as JSON writes them, in base 64."""
    return base64.b64encode(value).decode()


def read_double(value: float) -> float | int:
    """Return a number as Go writes it in JSON: without a fraction where it is whole.

    Raises
    ------
    ValueError
        The value is infinite or no number, which JSON cannot express.
    """
    if value - value != 0:
        raise ValueError(f"unsupported value: {value}")
    return int(value) if value.is_integer() and abs(value) < _WHOLE_DOUBLE_MAX else value
