"""The columns of each kind, compared with those of Kubernetes 1.36 in ``columns.yaml``."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from moorage.kinds.kind import Column
from moorage_sandbox.apiserver.served_kinds import served_kinds
from scheduler.tests.kinds.builders import named
from scheduler.tests.kinds.test_tables import row

COLUMNS: dict[str, str] = yaml.safe_load(Path(__file__).with_name("columns.yaml").read_text())
UNKNOWN_UPSTREAM = {"podgroups", "workloads", "resourcepoolstatusrequests"}


def declared(column: Column) -> str:
    wide = "wide " if column.priority else ""
    form = column.format or ("" if column.type == "string" else column.type)
    return f"{wide}{column.name} ({form})" if form else f"{wide}{column.name}"


def test_every_version_of_every_kind_declares_the_columns_of_1_36():
    kinds = [kind for kind in served_kinds() if kind.resource.plural not in UNKNOWN_UPSTREAM]
    assert {kind.resource.qualified for kind in kinds} == COLUMNS.keys()
    for kind in kinds:
        columns = ", ".join(map(declared, kind.columns))
        assert columns == COLUMNS[kind.resource.qualified], kind.resource


@pytest.mark.parametrize(
    ("plural", "obj", "cells"),
    [
        pytest.param(
            "storageversionmigrations",
            named("storageversionmigrations", spec={"resource": {"resource": "secrets"}}),
            ["x", "secrets."],
            id="a migration of a kind of the core group",
        ),
        pytest.param(
            "podcertificaterequests",
            named(
                "podcertificaterequests",
                spec={
                    "podName": "p",
                    "serviceAccountName": "s",
                    "nodeName": "n",
                    "signerName": "a.b/c",
                },
                status={"conditions": [{"type": "Denied"}, {"type": "Other"}]},
            ),
            ["x", "p", "s", "n", "a.b/c", "Denied"],
            id="a denied request for a certificate",
        ),
        pytest.param(
            "podcertificaterequests",
            named("podcertificaterequests", spec={}),
            ["x", "", "", "", "", "Pending"],
            id="a new request for a certificate",
        ),
        pytest.param(
            "devicetaintrules",
            named(
                "devicetaintrules",
                spec={
                    "taint": {
                        "key": "k",
                        "value": "v",
                        "effect": "NoExecute",
                        "timeAdded": "2026-01-01T00:04:00Z",
                    }
                },
            ),
            ["x", "k", "v", "NoExecute", "60s", "5m"],
            id="a rule that taints devices",
        ),
        pytest.param(
            "serviceaccounts",
            named("serviceaccounts", secrets=[{"name": "s"}]),
            ["x", "5m"],
            id="a service account",
        ),
    ],
)
def test_a_row_has_the_cells_of_1_36(plural, obj, cells):
    assert row(plural, obj) == cells
