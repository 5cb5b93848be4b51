"""Sizes of well-known instance types, as their vendors publish them.

``instance_types.toml`` is the table; each row names the vendor's page that has the size.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

GPU = "nvidia.com/gpu"


class InstanceType(msgspec.Struct, frozen=True, kw_only=True):
    """An instance type.

    Parameters
    ----------
    name
        As in the label ``node.kubernetes.io/instance-type``.
    cloud
        The vendor.
    resources
        The whole size, as quantities by the names of resources; memory in multiples of 2^30 bytes.
    page
        The vendor's page that has the size.
    """

    name: str
    cloud: str
    resources: dict[str, str]
    page: str


@cache
def instance_types() -> Mapping[str, InstanceType]:
    """Return the known instance types by name, in the order of the table."""
    text = files("moorage.nodeshapes").joinpath("instance_types.toml").read_text("utf-8")
    return {
        name: _instance_type(name, cloud, row)
        for cloud, rows in tomllib.loads(text).items()
        for name, row in rows.items()
    }


def _instance_type(name: str, cloud: str, row: dict[str, Any]) -> InstanceType:
    resources = {"cpu": row["cpu"], "memory": row["memory"]}
    if "gpu" in row:
        resources[GPU] = row["gpu"]
    return InstanceType(name=name, cloud=cloud, resources=resources, page=row["page"])
