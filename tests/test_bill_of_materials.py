"""The bill of materials: valid CycloneDX, complete, and the same bytes for the same release."""

from __future__ import annotations

import json
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tools.release.bill_of_materials import bill
from tools.release.build import bill_of_materials
from tools.release.packages import locked, vendored

FILES = {"moorage-0.2.0.tar.gz": "1" * 64, "moorage-0.2.0-py3-none-any.whl": "2" * 64}


def made() -> str:
    return bill("0.2.0", "2026-11-30", FILES)


def test_the_bill_is_valid_by_the_schema_and_a_broken_one_is_not(tmp_path: Path) -> None:
    name = bill_of_materials(tmp_path, "0.2.0", "2026-11-30", FILES)
    assert name == "moorage-0.2.0.cdx.json"
    text = (tmp_path / name).read_text()
    check = JsonStrictValidator(SchemaVersion.V1_6).validate_str
    assert check(text) is None
    assert check(text.replace('"type": "library"', '"type": "thing"', 1)) is not None


def test_the_bill_has_every_locked_package_with_its_hashes_and_what_is_shipped_in_the_page() -> (
    None
):
    found = json.loads(made())
    by_ref = {each["bom-ref"]: each for each in found["components"]}
    refs = [each.pin for each in locked()]
    refs += [f"npm:{each.package}=={each.version}" for each in vendored()]
    assert sorted(by_ref) == sorted(refs)
    for each in locked():
        part = by_ref[each.pin]
        (files,) = part["externalReferences"]
        assert {told["content"] for told in files["hashes"]} == {*each.sha256}
        assert part["purl"] == f"pkg:pypi/{each.name}@{each.version}"
    assert by_ref[next(ref for ref in by_ref if ref.startswith("numpy=="))]["scope"] == "required"
    assert by_ref[next(ref for ref in by_ref if ref.startswith("pytest=="))]["scope"] == "excluded"
    assert by_ref[next(r for r in by_ref if r.startswith("matplotlib=="))]["scope"] == "optional"


def test_each_part_is_reached_from_moorage() -> None:
    found = json.loads(made())
    needs = {each["ref"]: each.get("dependsOn", []) for each in found["dependencies"]}
    reached, waiting = set[str](), ["moorage==0.2.0"]
    while waiting:
        ref = waiting.pop()
        if ref not in reached:
            reached.add(ref)
            waiting += needs.get(ref, [])
    assert {each["bom-ref"] for each in found["components"]} == reached - {"moorage==0.2.0"}


def test_a_bill_names_the_released_files_and_is_the_same_when_made_again() -> None:
    text = made()
    assert text == made()
    root = json.loads(text)["metadata"]["component"]
    assert {
        each["url"]: each["hashes"][0]["content"] for each in root["externalReferences"]
    } == FILES
    assert text != bill("0.2.1", "2026-11-30", FILES)
