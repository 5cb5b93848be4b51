"""The table of instance types: every row is whole, names its source, and makes a shape."""

from __future__ import annotations

import re

import pytest

from moorage.api.quantity import parse_quantity
from moorage.nodeshapes.instance_types import GPU, InstanceType, instance_types
from moorage.nodeshapes.shapes import parse_shape
from moorage.nodeshapes.templates import DEFAULT_RESOURCES

GIB_NANO = 2**30 * 10**9
PAGES = {
    "AWS": r"Amazon EC2 (\w+) Instances",
    "Google Cloud": r"(General-purpose|Accelerator-optimized) machine family.*",
    "Azure": r"\S+([ -]series)? (size series|sizes)",
}


def rows() -> list[InstanceType]:
    return list(instance_types().values())


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_a_row_is_whole_and_names_its_page(row: InstanceType) -> None:
    assert re.fullmatch(PAGES[row.cloud], row.page), row.page
    assert {"cpu", "memory"} <= set(row.resources) <= {"cpu", "memory", GPU}
    assert row.resources["cpu"].isdecimal()
    assert parse_quantity(row.resources["memory"]) % GIB_NANO == 0, "vendors write multiples of GiB"
    assert all(parse_quantity(amount) > 0 for amount in row.resources.values())


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_a_shape_may_be_an_instance_type(row: InstanceType) -> None:
    shape = parse_shape(row.name)
    assert shape.resources == {**DEFAULT_RESOURCES, **row.resources}
    assert shape.labels == {"node.kubernetes.io/instance-type": row.name}


def test_every_cloud_has_types_with_and_without_gpus() -> None:
    kinds = {(row.cloud, GPU in row.resources) for row in rows()}
    assert kinds == {(cloud, gpu) for cloud in PAGES for gpu in (False, True)}
