"""Text to plain values to structs, strictly, with every fault found and not only the first.

First half of `load`: `parse_documents` refuses duplicate keys, `Reader` refuses unknown fields and
wrong types. A field at fault keeps its default, so that the checks after this one can still run.
"""

from __future__ import annotations

import difflib
import json
import types
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec

from moorage.api.bounds import OF_CONFIGURATION, check_bounds
from moorage.base.errors import ConfigError, DecodeError

T = TypeVar("T")


class _Broken:
    """Marks a value that could not be read; its fault is recorded."""


_BROKEN: Final = _Broken()


def parse_documents(text: str, *, source: str = "") -> list[Any]:
    """Return the plain values of one JSON document, or of each YAML document that is not empty.

    Raises
    ------
    ConfigError
        Not JSON or YAML, too large, or a key given twice (each named with its line).
    """
    if len(text) > OF_CONFIGURATION.bytes_max:
        raise ConfigError([f"longer than {OF_CONFIGURATION.bytes_max} bytes"], source=source)
    if text.lstrip().startswith("{"):
        try:
            return [_parse_json(text, source)]
        except (ValueError, RecursionError):
            pass  # flow style YAML starts with a brace as well, and its errors have their own texts
    # A start without a file goes without YAML, which takes time to import.
    from moorage.api.yaml_text import read_yaml

    repeated: list[str] = []
    try:
        values = read_yaml(text, OF_CONFIGURATION, repeated=repeated)
    except DecodeError as error:
        raise ConfigError([f"not YAML: {error}"], source=source) from error
    if repeated:
        raise ConfigError(repeated, source=source)
    return [value for value in values if value is not None]


def _parse_json(text: str, source: str) -> Any:
    duplicates: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result:
                duplicates.append(f'duplicate field "{key}"')
            result[key] = value
        return result

    value = json.loads(text, object_pairs_hook=collect)
    try:
        check_bounds(value, OF_CONFIGURATION)
        # Half a surrogate pair, written as an escape, is no text.
        json.dumps(value, ensure_ascii=False).encode()
    except DecodeError as error:
        raise ConfigError([str(error)], source=source) from error
    except UnicodeEncodeError as error:
        raise ConfigError(["not UTF-8: half of a surrogate pair"], source=source) from error
    if duplicates:
        raise ConfigError(duplicates, source=source)
    return value


@cache
def _fields(type_: type[msgspec.Struct]) -> Mapping[str, msgspec.structs.FieldInfo]:
    """Return the fields of a struct by their names in files."""
    return {field.encode_name: field for field in msgspec.structs.fields(type_)}


class Reader:
    """Builds structs from plain values and collects faults as Kubernetes field errors."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def convert_value(self, type_: type[T], value: object, *, path: str = "") -> T | None:
        """Return `value` as `type_`, or None when it cannot be converted.

        Parameters
        ----------
        type_
            A msgspec struct; fields may be structs, lists, maps and scalars, optional or not.
        value
            Plain values as JSON and YAML give them. Null means absent.
        path
            The place of the value, e.g. ``profiles[0].plugins``; empty for the whole document.
        """
        result = self._convert_value(type_, value, path)
        return None if isinstance(result, _Broken) else cast("T", result)

    def _convert_value(self, type_: Any, value: object, path: str) -> object:
        type_ = _without_none(type_)
        if type_ is Any:
            return value
        if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
            return self._read_struct(type_, value, path)
        if get_origin(type_) in (list, tuple):
            items = self._read_list(get_args(type_)[0], value, path)
            return tuple(items) if get_origin(type_) is tuple and isinstance(items, list) else items
        if get_origin(type_) is Literal and value not in get_args(type_):
            return self._unsupported(path, value, get_args(type_))
        try:
            read: object = msgspec.convert(value, type_)
        except msgspec.ValidationError as error:
            detail = str(error).replace("`", "").partition(" - at ")[0]
            return self._fault(path, value, detail[:1].lower() + detail[1:])
        if isinstance(read, int) and not -(2**63) <= read < 2**63:
            return self._fault(path, value, "does not fit in 64 bits")
        return read

    def _read_struct(self, type_: type[msgspec.Struct], value: object, path: str) -> object:
        if not isinstance(value, Mapping):
            return self._fault(path, value, "expected an object")
        fields = _fields(type_)
        known: dict[str, object] = {}
        whole = True
        for key, item in value.items():
            field = fields.get(key)
            if field is None:
                self._unknown(join(path, str(key)), str(key), fields)
            elif item is not None:
                read = self._convert_value(field.type, item, join(path, field.encode_name))
                if not isinstance(read, _Broken):
                    known[field.name] = read
                elif field.required:
                    whole = False
        for field in fields.values():
            if field.required and value.get(field.encode_name) is None:
                self.faults.append(f"{join(path, field.encode_name)}: Required value")
                whole = False
        return type_(**known) if whole else _BROKEN

    def _read_list(self, item_type: Any, value: object, path: str) -> object:
        if not isinstance(value, list):
            return self._fault(path, value, "expected a list")
        # To a program in Go, null in a list of objects is an object without fields.
        of_structs = isinstance(item_type, type) and issubclass(item_type, msgspec.Struct)
        read = [
            self._convert_value(
                item_type, {} if item is None and of_structs else item, f"{path}[{i}]"
            )
            for i, item in enumerate(value)
        ]
        return [item for item in read if not isinstance(item, _Broken)]

    def _unknown(self, path: str, key: str, fields: Iterable[str]) -> None:
        close = difflib.get_close_matches(key, sorted(fields), n=1)
        hint = f" (did you mean {quoted(close[0])}?)" if close else ""
        self.faults.append(f"unknown field {quoted(path)}{hint}")

    def _unsupported(self, path: str, value: object, allowed: Iterable[str]) -> _Broken:
        self.faults.append(unsupported(path, value, sorted(allowed)))
        return _BROKEN

    def _fault(self, path: str, value: object, detail: str) -> _Broken:
        self.faults.append(invalid(path, value, detail))
        return _BROKEN


def join(path: str, name: str) -> str:
    """Return the path of a field below another."""
    return f"{path}.{name}" if path else name


def quoted(value: object) -> str:
    """Return a value as field errors print it: JSON, with spaces left out."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.to_builtins(value)
    return json.dumps(value, separators=(",", ":"), default=str, ensure_ascii=False)


def invalid(path: str, value: object, detail: str) -> str:
    """Return the field error for a value that is not allowed."""
    return f"{path or '<root>'}: Invalid value: {quoted(value)}: {detail}"


def unsupported(path: str, value: object, allowed: Iterable[object]) -> str:
    """Return the field error for a value that is none of the allowed ones."""
    options = ", ".join(map(quoted, allowed))
    return f"{path}: Unsupported value: {quoted(value)}: supported values: {options}"


def _without_none(type_: Any) -> Any:
    """Return X for ``X | None``; a value that is null was left out before."""
    if get_origin(type_) in (Union, types.UnionType):
        left = [item for item in get_args(type_) if item is not type(None)]
        if len(left) == 1:
            return left[0]
    return type_
