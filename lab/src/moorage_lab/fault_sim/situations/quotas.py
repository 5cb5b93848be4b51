"""Pods that wait until the quota of their namespace, or of another one, allows them."""

from __future__ import annotations

from typing import Any

from moorage_lab.fault_sim.situations.situation import Situation, SituationTable, Steps
from moorage_lab.fault_sim.users.quotas import changed, deleted, elastic, namespace

WAITS = SituationTable()
"""The things of quotas that a pod can wait for."""


def _create_quota(s: Situation, least: str, most: str) -> dict[str, Any]:
    """Create a namespace with a quota; return the fields of its pods."""
    s.create_objects(namespace(s.tag), elastic(s.tag, least, most))
    s.wait_seconds(0.5)
    return {"namespace": s.tag, "cpu": "1"}


@WAITS.declare()
def bound_is_raised(s: Situation) -> Steps:
    s.create_node()
    s.create_pod(**_create_quota(s, "0", "500m"))
    yield
    s.add_acts(changed(s.plot, s.tag, elastic(s.tag, "2", "2")["spec"]))


@WAITS.declare()
def bound_is_reached(s: Situation) -> Steps:
    """Wait for a pod of the namespace to go, where less is allowed than guaranteed."""
    s.create_node()
    fields = _create_quota(s, "4", "1")
    holder = s.create_holder(**fields)
    s.create_pod(**fields)
    yield
    s.delete_pod(holder, namespace=s.tag)


@WAITS.declare()
def bound_goes(s: Situation) -> Steps:
    """Let the quota itself be deleted."""
    s.create_node()
    s.create_pod(**_create_quota(s, "0", "500m"))
    yield
    s.add_acts(deleted(s.plot, s.tag))


@WAITS.declare()
def namesake_goes(s: Situation) -> Steps:
    """Wait until another pod of the namespace has gone, which was on another node."""
    s.create_node()
    s.part("far").create_node()
    fields = _create_quota(s, "1", "1")
    holder = s.create_holder(**fields, node_selector={"wait": f"{s.tag}-far"})
    s.create_pod(**fields)
    yield
    s.delete_pod(holder, namespace=s.tag)


@WAITS.declare()
def minimum_comes(s: Situation) -> Steps:
    """Wait until another namespace guarantees more, so that there is something to borrow."""
    s.create_node()
    s.create_pod(**_create_quota(s, "0", "4"))
    yield
    rich = s.object_name("rich")
    s.create_objects(namespace(rich), elastic(rich, "64", "64"))
