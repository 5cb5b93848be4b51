"""A group whose search was postponed, as other pods wait, until its pods run.

Not covered: when a search is postponed (`engine.groups.test_search_pauses`).
"""

from __future__ import annotations

import pytest

from moorage.base.clock import ManualClock
from moorage.config.load import parse_config
from moorage.engine.groups.places_search import SearchPauses
from moorage_sandbox.testing.builders import node_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.service.test_extenders import HEAD
from scheduler.tests.service.test_groups_with_extenders import COSCHEDULING
from tests.scenarios.gangs import of_labels


def test_the_group_is_searched_at_a_later_attempt_without_any_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bool] = []

    def allows(pauses: SearchPauses) -> bool:
        asked.append(len(asked) >= 2)
        return asked[-1]

    monkeypatch.setattr(SearchPauses, "allows", allows)
    clock = ManualClock()
    config = parse_config(f"{HEAD}{COSCHEDULING}")

    async def main() -> None:
        nodes = [node_manifest("n1", cpu="4"), node_manifest("n2", cpu="3")]
        async with VirtualCluster(clock, nodes=nodes, config=config) as cluster:
            pods = [
                of_labels(name, least=3, cpu=cpu)
                for name, cpu in (("a", "2"), ("b", "2"), ("c", "3"))
            ]
            await cluster.create_objects(*pods)
            await cluster.until(
                lambda: all(cluster.node_of(name) for name in ("a", "b", "c")), seconds=60
            )
            assert cluster.node_of("c") == "n2"

    run_virtual(main(), clock)
    assert asked == [False, False, True]
