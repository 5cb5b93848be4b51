"""Scope: an object of the right shape, drawn from the definitions, never causes a crash."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.kinds import facts
from moorage.kinds.facts import OPEN, Field
from moorage.kinds.kind import Obj
from moorage.kinds.status import StatusError
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.verbs.patch_strategic import PatchError, strategic_merge
from moorage_sandbox.apiserver.wire.table import to_table
from scheduler.tests.kinds.builders import World

NAMES = st.sampled_from(
    ["", "a", "web", "Always", "In", "Exists", "Gt", "10.0.0.1", "x/y", "a b", "é", "True", "5%"]
)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": NAMES,
    "int32": st.sampled_from([-1, 0, 1, 2, 80, 70_000, 2**31 - 1]),
    "int64": st.sampled_from([-1, 0, 30, 2**63 - 1]),
    "double": st.sampled_from([0.5, 1.0, 3]),
    "boolean": st.booleans(),
    "Time": st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:00+02:00"]),
    "MicroTime": st.just("2026-01-01T00:00:00.000001Z"),
    "Quantity": st.sampled_from([0, 1, "0", "-1", "500m", "1Gi", "1e3", 0.5, "0.0001"]),
    "IntOrString": st.sampled_from([0, 80, "http", "50%", "-1%"]),
    "bytes": st.just("YQ=="),
    **dict.fromkeys(sorted(OPEN), st.just({})),
}
DEPTH = 7


def value(field: Field, depth: int) -> st.SearchStrategy[Any]:
    if field.shape == "scalar":
        return SCALARS[field.name]
    if field.shape == "list":
        return st.lists(st.none() | value(field.element, depth), max_size=2)
    if field.shape == "map":
        keys = NAMES | st.sampled_from(["cpu", "memory", "example.com/gpu", "hugepages-2Mi"])
        return st.dictionaries(keys, value(field.element, depth), max_size=2)
    return obj_of(field.name, depth - 1)


# What has to be there for the interesting rules to be reached.
ALWAYS = {
    "Pod": ("spec",),
    "PodSpec": ("containers",),
    "PodTemplateSpec": ("spec",),
    "Affinity": ("nodeAffinity", "podAffinity"),
}


@st.composite
def obj_of(draw: st.DrawFn, name: str, depth: int) -> Obj:
    fields = facts.definition(name).fields
    if depth <= 0 or not fields:
        return {}
    short = facts.short_name(name)
    most = 10 if short in ("PodSpec", "Container") else 4
    wanted = list(ALWAYS.get(short, ("spec",) if "spec" in fields else ()))
    wanted += draw(st.lists(st.sampled_from(sorted(fields)), max_size=most, unique=True))
    obj = {}
    for key in dict.fromkeys(wanted):
        # The upper levels are never null, or most objects would be empty.
        drawn = value(fields[key], depth)
        obj[key] = draw(st.none() | drawn if depth < DEPTH - 1 else drawn)
    return obj


@st.composite
def objects_of_any_kind(draw: st.DrawFn) -> tuple[Any, Obj, Obj]:
    kinds = served_kinds()
    # Pods have most of the rules, so every other object is one.
    kind = kinds[0] if draw(st.booleans()) else draw(st.sampled_from(kinds))
    name = facts.definition_name(kind.resource)
    drawn = [draw(obj_of(name, DEPTH)) for _ in range(2)]
    for obj in drawn:
        obj["apiVersion"], obj["kind"] = kind.resource.api_version, kind.resource.kind
        obj["metadata"] = {"name": "x", "namespace": "default"}
    return kind, drawn[0], drawn[1]


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=objects_of_any_kind())
def test_an_object_of_the_right_shape_is_stored_or_refused(drawn):
    kind, sent, patch = drawn
    assert kind.shape.type_errors(sent) == []
    assert kind.shape.unknown_fields(sent) == []
    kind.default(sent)
    once = copy.deepcopy(sent)
    kind.default(sent)
    assert sent == once
    try:
        kind.prepare_create(sent, World())
    except StatusError:
        return
    for error in kind.validate(sent, None, subresource=None):
        assert error.message
    kind.selectable_fields(sent)
    to_table(kind, [sent], 0)
    try:
        changed = strategic_merge(sent, patch, kind.resource)
    except PatchError:
        return
    kind.default(changed)
    for subresource in (None, "status"):
        new = copy.deepcopy(changed)
        kind.prepare_update(new, sent, subresource=subresource, ctx=World())
        for error in kind.validate(new, sent, subresource=subresource):
            assert error.message
