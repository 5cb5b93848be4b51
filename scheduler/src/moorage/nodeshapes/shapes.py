"""Shapes of nodes, as they are written on a command line: sizes, labels and taints.

``instance_types`` has the sizes of well-known instance types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final

import msgspec

from moorage.api.names import is_hugepages_resource, label_value_faults, qualified_name_faults
from moorage.api.quantity import parse_quantity
from moorage.base.errors import UsageError
from moorage.nodeshapes.instance_types import GPU, instance_types
from moorage.nodeshapes.templates import DEFAULT_RESOURCES, NodeTemplate, default_nodes

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
"""The label that names a node's instance type."""
# Names that are written short, and extended resources that need no ``resource=`` before them.
_RESOURCES: Final[Mapping[str, str]] = {
    **{name: name for name in DEFAULT_RESOURCES},
    "gpu": GPU,
    GPU: GPU,
    "amd.com/gpu": "amd.com/gpu",
}
# Words that are meant for something else.
_MEANT: Final[Mapping[str, str]] = {
    "cpus": "cpu",
    "gpus": "gpu",
    "mem": "memory",
    "ram": "memory",
    "counts": "count",
    "taints": "taint",
}
_LABEL: Final = "label:"
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that are alike.

    Parameters
    ----------
    resources
        Capacity and allocatable, as quantities.
    labels, taints
        Labels and taints besides the default ones; taints as in ``spec.taints``.
    count
        The number of nodes; None to share what the other shapes leave.
    """

    resources: dict[str, str]
    labels: dict[str, str] = {}
    taints: tuple[dict[str, str], ...] = ()
    count: int | None = None


def parse_shape(text: str) -> Shape:
    """Read a shape, such as ``cpu=96,memory=1Ti,gpu=8,label:pool=train``.

    Parameters
    ----------
    text
        Parts between commas: an instance type; ``RESOURCE=AMOUNT``; ``resource=NAME=AMOUNT`` for
        other extended resources; ``label:KEY=VALUE``; ``taint=KEY=VALUE:EFFECT``; ``count=N``.
        Resources that are not named are those of default nodes.

    Raises
    ------
    UsageError
        A part is not as above; the message names it.
    """
    resources = dict(DEFAULT_RESOURCES)
    labels: dict[str, str] = {}
    taints: list[dict[str, str]] = []
    count: int | None = None
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if key.startswith(_LABEL):
            labels |= _label(key.removeprefix(_LABEL), value, part, text)
        elif not equals:
            resources |= _instance_type(key, text)
            labels[INSTANCE_TYPE] = key
        elif key == "count":
            count = _count(value, text)
        elif key == "taint":
            taints.append(_taint(value, text))
        elif key == "resource":
            name, _, amount = value.partition("=")
            _no_faults(qualified_name_faults(name), part, text)
            resources[name] = _amount(amount, part, text, whole=True)
        elif key in _RESOURCES or is_hugepages_resource(key):
            name = _RESOURCES.get(key, key)
            resources[name] = _amount(value, part, text, whole="/" in name)
        elif key in _MEANT:
            raise UsageError(f"--shape {text}: {part}: write {_MEANT[key]}={value}")
        else:
            raise UsageError(
                f"--shape {text}: there is no key {key!r}: write {_LABEL}{key}={value} for a "
                f"label, or resource={key}={value} for a resource"
            )
    return Shape(resources=resources, labels=labels, taints=tuple(taints), count=count)


def shaped_nodes(
    shapes: Sequence[Shape], count: int | None, *, prefix: str = "node", first: int = 1
) -> list[NodeTemplate]:
    """Return the templates of a cluster of shapes, named and spread over zones as default nodes.

    Parameters
    ----------
    shapes
        At least one.
    count
        Number of all nodes. Shapes without a count of their own share the rest evenly, and the
        first ones get one more. None for the sum of the shapes' counts.
    first
        Number of the first node.

    Raises
    ------
    UsageError
        The counts do not agree.
    """
    alike = [
        shape for shape, n in zip(shapes, _counts(shapes, count), strict=True) for _ in range(n)
    ]
    templates = default_nodes(len(alike), prefix=prefix, first=first)
    return [_shaped(template, shape) for template, shape in zip(templates, alike, strict=True)]


def _counts(shapes: Sequence[Shape], count: int | None) -> list[int]:
    own = sum(shape.count or 0 for shape in shapes)
    sharing = sum(shape.count is None for shape in shapes)
    if count is None and sharing:
        raise UsageError("say how many nodes in all, or give every --shape a count=N")
    rest = 0 if count is None else count - own
    if rest < 0 or (rest and not sharing):
        raise UsageError(f"the shapes count {own} nodes, and there should be {count}")
    counts = []
    for shape in shapes:
        if shape.count is not None:
            counts.append(shape.count)
            continue
        counts.append(-(-rest // sharing))
        rest -= counts[-1]
        sharing -= 1
    return counts


def _shaped(template: NodeTemplate, shape: Shape) -> NodeTemplate:
    metadata, spec = template["metadata"], template["spec"]
    assert isinstance(metadata, dict), "a template has metadata"
    assert isinstance(spec, dict), "a template has a spec"
    metadata = {**metadata, "labels": metadata["labels"] | shape.labels}
    if shape.taints:
        spec = {**spec, "taints": [dict(taint) for taint in shape.taints]}
    status = {"capacity": dict(shape.resources), "allocatable": dict(shape.resources)}
    return {**template, "metadata": metadata, "spec": spec, "status": status}


def _label(key: str, value: str, part: str, shape: str) -> dict[str, str]:
    _no_faults([*qualified_name_faults(key), *label_value_faults(value)], part, shape)
    return {key: value}


def _instance_type(name: str, shape: str) -> dict[str, str]:
    known = instance_types()
    if name in _RESOURCES:
        raise UsageError(f"--shape {shape}: {name}: write {name}=AMOUNT")
    if name not in known:
        near = get_close_matches(name, known, n=3)
        hint = f"the nearest are {', '.join(near)}" if near else f"for example {next(iter(known))}"
        raise UsageError(
            f"--shape {shape}: {name!r} is no known instance type, {hint} "
            "(`moorage nodes shapes` lists all); or write cpu=4,memory=16Gi"
        )
    return known[name].resources


def _count(text: str, shape: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"--shape {shape}: count={text}: write a whole number")
    return int(text)


def _amount(text: str, part: str, shape: str, *, whole: bool) -> str:
    """Check a quantity; `whole` for extended resources, which the API server wants whole."""
    if " " in text.strip():
        raise UsageError(f"--shape {shape}: {part}: put a comma between two parts")
    try:
        nano = parse_quantity(text)
    except ValueError as error:
        raise UsageError(f"--shape {shape}: {part}: {error}") from error
    if nano < 0:
        raise UsageError(f"--shape {shape}: {part}: an amount is not negative")
    if whole and nano % 10**9:
        raise UsageError(f"--shape {shape}: {part}: extended resources are whole numbers")
    return text


def _taint(text: str, shape: str) -> dict[str, str]:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    part = f"taint={text}"
    if effect not in _EFFECTS:
        raise UsageError(
            f"--shape {shape}: {part}: write KEY=VALUE:EFFECT, the effect one of "
            f"{', '.join(_EFFECTS)}"
        )
    _no_faults([*qualified_name_faults(key), *label_value_faults(value)], part, shape)
    return (
        {"key": key, "value": value, "effect": effect} if value else {"key": key, "effect": effect}
    )


def _no_faults(faults: Sequence[str], part: str, shape: str) -> None:
    if faults:
        raise UsageError(f"--shape {shape}: {part}: {faults[0]}")
