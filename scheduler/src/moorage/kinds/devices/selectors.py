"""Selectors of devices: whether an expression in CEL compiles, and is cheap enough.

Place in the flow: the rules of claims and device classes ask here. The scheduler evaluates
selectors, with a compiler of its own. Mirrors kubernetes v1.36
dynamic-resource-allocation/cel/compile.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any, Final

from moorage.cel.runtime import (
    Program,
    check_types,
    compile_over,
    is_installed,
    new_environment,
    quantities_by_name,
    unknown_functions,
)
from moorage.cel.selector_cost import (
    SELECTOR_COST_MAX,
    SELECTOR_LENGTH_MAX,
    has_many_macros,
    selector_cost,
)
from moorage.kinds.kind import FieldError, forbidden, invalid, too_long

_EXPRESSIONS_MAX: Final = 64 * 1024
_DEVICE = "DRADevice"
# In a message, the values of a map of maps have any type. So expressions with capacities are
# compiled again over a variable that knows the type of capacities.
_CAPACITY = re.compile(r"\bdevice\s*\.\s*capacity\b")
_QUANTITIES = "__capacity"
# Functions of Kubernetes that the runtime lacks, or has for fewer arguments.
_LACKING = frozenset(
    {
        "cidr",
        "containsCIDR",
        "containsIP",
        "dns1035Label",
        "dns1035LabelPrefix",
        "dns1123Label",
        "dns1123LabelPrefix",
        "dns1123Subdomain",
        "dns1123SubdomainPrefix",
        "family",
        "findAll",
        "format",
        "getEscapedPath",
        "getHost",
        "getHostname",
        "getPort",
        "getQuery",
        "getScheme",
        "includes",
        "indexOf",
        "ip",
        "isCIDR",
        "isCanonical",
        "isGlobalUnicast",
        "isIP",
        "isLinkLocalMulticast",
        "isLinkLocalUnicast",
        "isLoopback",
        "isSorted",
        "isURL",
        "isUnspecified",
        "labelValue",
        "lastIndexOf",
        "masked",
        "max",
        "min",
        "named",
        "prefixLength",
        "qualifiedName",
        "sum",
        "uri",
        "url",
        "uuid",
        "validate",
    }
)
# Macros over two variables, which are undeclared where the macro is unknown.
_MACROS = frozenset(
    {"all", "exists", "existsOne", "transformList", "transformMap", "transformMapEntry"}
)


def check_selector(expression: str, field: str) -> list[FieldError]:
    """Check that a selector compiles, and stays below the limits of length and cost."""
    if len(expression.encode()) > SELECTOR_LENGTH_MAX:
        return [too_long(field, SELECTOR_LENGTH_MAX)]
    too_complex = forbidden(field, "too complex, exceeds cost limit")
    if has_many_macros(expression):
        # Compiling it would be expensive.
        return [too_complex]
    fault = selector_fault(expression)
    if fault:
        return [invalid(field, expression, fault)]
    return [too_complex] if _costs_too_much(expression) else []


def check_total_length(expressions: Iterable[str], field: str) -> list[FieldError]:
    """Limit the length of all selectors of an object: compiling takes 5 µs a byte."""
    if sum(map(len, expressions)) <= _EXPRESSIONS_MAX:
        return []
    detail = f"all selectors together may not be more than {_EXPRESSIONS_MAX} bytes"
    return [forbidden(field, detail)]


@lru_cache(maxsize=1024)
def _costs_too_much(expression: str) -> bool:
    program = compile_over(expression, "bool", ("device",)) if is_installed() else None
    if not isinstance(program, Program):
        return False
    return selector_cost(program.expression.serialize()) > SELECTOR_COST_MAX


@lru_cache(maxsize=1024)
def selector_fault(expression: str) -> str:
    """Return the reason why an expression is no selector; empty if it is one.

    An expression with functions that this server lacks counts as one, and so does every expression
    where no CEL is installed.
    """
    if not is_installed():
        return ""
    fault = _fault(expression)
    if fault or not _CAPACITY.search(expression):
        return fault
    return _fault(_CAPACITY.sub(_QUANTITIES, expression))


def _fault(expression: str) -> str:
    outcome = check_types(_environment(), expression)
    if isinstance(outcome, str):
        good, shown = outcome in ("bool", "dyn"), outcome.replace("bytes", "kubernetes.Quantity")
        return "" if good else f"must evaluate to bool or the unknown type, not {shown}"
    if any(not _MACROS.isdisjoint(unknown_functions(each)) for each in outcome):
        return ""
    errors = [each for each in outcome if _LACKING.isdisjoint(unknown_functions(each))]
    message = "\n".join(errors).replace(_QUANTITIES, "device.capacity")
    return f"compilation failed: {message}" if message else ""


@cache
def _environment() -> Any:
    # Google's protobuf runtime is imported with the first selector.
    from google.protobuf import struct_pb2
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

    pool, structs = DescriptorPool(), struct_pb2.DESCRIPTOR
    pool.AddSerializedFile(structs.serialized_pb)
    file = FileDescriptorProto(name="device.proto", syntax="proto3", dependency=[structs.name])
    device = file.message_type.add(name=_DEVICE)
    once, repeated = FieldDescriptorProto.LABEL_OPTIONAL, FieldDescriptorProto.LABEL_REPEATED
    text, message = FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_MESSAGE
    boolean = FieldDescriptorProto.TYPE_BOOL
    device.field.add(name="driver", number=1, label=once, type=text)
    device.field.add(name="allowMultipleAllocations", number=2, label=once, type=boolean)
    for number, name in enumerate(("attributes", "capacity"), start=3):
        # A map by domain of maps by name; the runtime recognises a map by its entry.
        entry = device.nested_type.add(name=f"{name.capitalize()}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=once, type=text)
        struct = ".google.protobuf.Struct"
        entry.field.add(name="value", number=2, label=once, type=message, type_name=struct)
        full = f".{_DEVICE}.{entry.name}"
        device.field.add(name=name, number=number, label=repeated, type=message, type_name=full)
    pool.Add(file)
    return new_environment({"device": _DEVICE, _QUANTITIES: quantities_by_name()}, pool)
