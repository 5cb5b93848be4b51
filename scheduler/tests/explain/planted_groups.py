"""Planted causes that lie in the pod's group: a member is missing, or the members lack room.

The groups are those of coscheduling, defined by two labels.
"""

from __future__ import annotations

from typing import Any

from scheduler.tests.explain.clusters import waiting
from scheduler.tests.explain.plan import Plan
from tests.scenarios.gangs import coscheduling, of_labels


def _in_group(plan: Plan, *, least: int, there: int, **fields: Any) -> None:
    """Put the pod into a group, with further members up to a number of pods."""
    plan.config = coscheduling()
    labels = of_labels("p", least=least)["metadata"]["labels"]
    plan.pod |= {"labels": labels, **fields}
    for index in range(1, there):
        plan.objects.append(waiting(f"q{index}", labels=labels, **{"memory": "1Gi", **fields}))


def missing_member(plan: Plan) -> tuple[str, str]:
    """The pod fits, and its group has fewer pods than it needs."""
    least = plan.draw.randint(2, 4)
    there = plan.draw.randint(1, least - 1)
    _in_group(plan, least=least, there=there, cpu="500m")
    return "would fit on ", f"its group default/g has {there} of the {least} pods it needs"


def group_without_room(plan: Plan) -> tuple[str, str]:
    """Each open node takes one member, and the group needs more."""
    for name in plan.open:
        status = plan.nodes[name]["status"]
        for amounts in (status["capacity"], status["allocatable"]):
            amounts["cpu"] = "4"
    room = len(plan.open)
    least = room + plan.draw.randint(1, 2)
    _in_group(plan, least=least, there=least, cpu="3")
    return (
        "would fit on ",
        f"its group default/g needs {least} pods with a place, and only {room} fit together",
    )


def member_too_large(plan: Plan) -> tuple[str, str]:
    """The other members fit, and this one fits no node."""
    least = plan.draw.randint(2, 3)
    _in_group(plan, least=least, there=least, cpu="500m")
    plan.pod["cpu"] = "20"
    return "never fits here, not even on an empty node, because of ", "cpu (it requests 20"
