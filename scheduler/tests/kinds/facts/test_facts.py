"""Scope: the shipped facts of the API are complete, and they agree with each other."""

from __future__ import annotations

import gzip
import re
import shutil
from pathlib import Path

from moorage.kinds import facts
from scheduler.tests.kinds.facts import packing


def test_every_reference_leads_to_a_definition():
    found = facts.definitions()
    shapes = [each.innermost for fact in found.values() for each in fact.fields.values()]
    assert {each.ref for each in shapes if each.ref} - found.keys() == set()


def test_every_type_has_a_shape_and_a_name():
    for name, fact in facts.definitions().items():
        for field in fact.fields.values():
            assert field.innermost.shape in ("object", "scalar"), name
            assert field.innermost.name, name


def test_every_required_field_and_every_list_key_is_a_field():
    for name, fact in facts.definitions().items():
        assert set(fact.required) <= set(fact.fields), name
        for key, field in fact.fields.items():
            if field.list_map_keys:
                item = facts.definition(field.element.name)
                assert set(field.list_map_keys) <= set(item.fields), (name, key)


def test_only_one_definition_contains_itself():
    names = facts.definitions()
    within = {name for name in names if name in facts.closure(facts.references(name))}
    assert within == {facts.SCHEMA_PROPS}


def test_every_body_of_a_resource_has_a_definition():
    missing = [
        (each.plural, each.subresource)
        for each in facts.resources()
        if "connect" not in each.verbs
        and not facts.has_definition(each.body_group, each.body_version, each.kind)
    ]
    assert missing == []


_OF_1_37 = re.compile(
    r"api\.resource\.v1\.DeviceTaint(Rule|Selector)|api\.scheduling\.(v1beta1|v1alpha3)\."
)


def test_counts_of_version_1_36():
    of_1_37 = {name for name in facts.definitions() if _OF_1_37.search(name)}
    assert len(of_1_37) == 59
    assert (len(facts.definitions()) - len(of_1_37), len(facts.resources())) == (771, 150)


def test_packing_keeps_the_content_and_is_reproducible(tmp_path: Path):
    packing.pack(packing.PACKAGE, tmp_path)
    assert packing.differences(packing.PACKAGE, tmp_path) == []
    first = (tmp_path / "kinds.json.gz").read_bytes()
    assert packing.packed(first) == first


def test_a_changed_file_is_found(tmp_path: Path):
    for name in packing.NAMES:
        shutil.copy(packing.PACKAGE / f"{name}.json.gz", tmp_path)
    content = gzip.decompress((tmp_path / "kinds.json.gz").read_bytes())
    changed = content.replace(b'"namespaced":true', b'"namespaced":false', 1)
    (tmp_path / "kinds.json.gz").write_bytes(gzip.compress(changed))
    assert packing.differences(tmp_path) == ["kinds"]
