"""Groups of pods that wait for their group, a member, or room for all of them."""

from __future__ import annotations

from typing import Any

from moorage.api.coscheduling import GROUP_LABEL
from moorage_lab.fault_sim.situations.situation import Situation, SituationTable, Steps
from moorage_lab.fault_sim.users.groups import gang, labelled

GANG_WAITS = SituationTable()
"""The things that groups of Kubernetes can wait for."""

GANGS_IN_VAIN = SituationTable()
"""The groups that wait until the end."""

FAILURES = SituationTable(disturbs=True)
"""The ways of groups that fail late."""

TEAM_WAITS = SituationTable()
"""The things that groups of coscheduling can wait for."""


def member(s: Situation) -> dict[str, Any]:
    """Return the fields of a pod of the group that has the situation's tag as its name."""
    return {"schedulingGroup": {"podGroupName": s.tag}}


@GANG_WAITS.declare(binds=("0", "1"))
def group_comes(s: Situation) -> Steps:
    s.create_node()
    for suffix in "01":
        s.create_pod(suffix, cpu="500m", **member(s))
    yield
    s.create_objects(gang(s.tag, 2))


@GANG_WAITS.declare(binds=("0", "1", "last"))
def member_comes(s: Situation) -> Steps:
    s.create_node()
    s.create_objects(gang(s.tag, 3))
    for suffix in "01":
        s.create_pod(suffix, cpu="500m", **member(s))
    yield
    s.create_pod("last", cpu="500m", **member(s))


@GANG_WAITS.declare(binds=("0", "1"))
def room_for_all(s: Situation) -> Steps:
    s.create_node()
    s.create_objects(gang(s.tag, 2))
    holder = s.create_holder(cpu="500m")
    for suffix in "01":
        s.create_pod(suffix, cpu="1", **member(s))
    yield
    s.delete_pod(holder)


@GANG_WAITS.declare(binds=("1", "2"))
def room_without_leaver(s: Situation) -> Steps:
    """Let room come for a gang whose first member is being deleted, and held by a finalizer."""
    s.create_node()
    s.create_objects(gang(s.tag, 2))
    holder = s.create_holder(cpu="500m")
    for suffix, finalizers in (("0", ["example.com/slow"]), ("1", None), ("2", None)):
        s.create_plain_pod(suffix, cpu="1", memory="64Mi", **member(s), finalizers=finalizers)
        s.wait_seconds(0.3)
    s.wait_seconds(1.0)
    s.delete_pod(s.object_name("0"))
    yield
    s.delete_pod(holder)


@GANGS_IN_VAIN.declare(binds=())
def gang_in_vain(s: Situation) -> Steps:
    """Let a gang wait for room that never comes; a member that waited is deleted."""
    s.create_node()
    s.create_objects(gang(s.tag, 2))
    for suffix in "012":
        s.create_pod(suffix, **member(s))
    s.wait_seconds(1.0)
    yield
    s.delete_pod(s.object_name("0"))


@FAILURES.declare(binds=("0", "1", "2"))
def member_fails(s: Situation) -> Steps:
    """Let bindings of some members fail, while another pod comes for their room."""
    s.create_node()
    s.create_objects(gang(s.tag, 3))
    yield
    s.disturb(("error-500", 0.5), seconds=1.0)
    for suffix in "012":
        s.create_pod(suffix, cpu="600m", **member(s))
        s.wait_seconds(-0.3)  # all come at once
    s.wait_seconds(0.1)
    s.create_pod("other", cpu="600m")


@FAILURES.declare(binds=("1", "2"))
def room_as_one_goes(s: Situation) -> Steps:
    """Let one moment of the watch tell of room for a gang, and that a member is gone."""
    yield from _room_without_one(s, finalizers=[])


@FAILURES.declare(binds=("1", "2"))
def room_as_one_leaves(s: Situation) -> Steps:
    """Let one moment of the watch tell of room for a gang, and that a member is being deleted."""
    yield from _room_without_one(s, finalizers=["example.com/slow"])


def _room_without_one(s: Situation, *, finalizers: list[str]) -> Steps:
    """Nothing is tried between the two news; the member that leaves is the one that room wakes.

    No member has a node on trial: one that has comes back by backoff, without an event.
    """
    s.create_node()
    s.create_objects(gang(s.tag, 2))
    holder = s.create_holder(cpu="1500m", terminationGracePeriodSeconds=0)
    for suffix in "012":
        s.create_plain_pod(suffix, cpu="1", memory="64Mi", **member(s), finalizers=finalizers)
        s.wait_seconds(0.3)
    s.wait_seconds(1.0)
    yield
    s.disturb(("watch-batched", 1.0), seconds=2.0)
    s.delete_pod(holder)
    s.wait_seconds(0.01)
    s.delete_pod(s.object_name("0"))


def _teammate(s: Situation) -> dict[str, Any]:
    return {"cpu": "500m", "labels": {GROUP_LABEL: s.tag}}


@TEAM_WAITS.declare(binds=("0", "1"))
def team_comes(s: Situation) -> Steps:
    s.create_node()
    for suffix in "01":
        s.create_pod(suffix, **_teammate(s))
    yield
    s.create_objects(labelled(s.tag, 2))


@TEAM_WAITS.declare(binds=("0", "1", "last"))
def teammate_comes(s: Situation) -> Steps:
    s.create_node()
    s.create_objects(labelled(s.tag, 3))
    for suffix in "01":
        s.create_pod(suffix, **_teammate(s))
    yield
    s.create_pod("last", **_teammate(s))


@TEAM_WAITS.declare(binds=("0", "1"))
def room_for_team(s: Situation) -> Steps:
    s.create_node()
    s.create_objects(labelled(s.tag, 2))
    holder = s.create_holder(cpu="1500m")
    for suffix in "01":
        s.create_pod(suffix, **_teammate(s))
    yield
    s.delete_pod(holder)


@TEAM_WAITS.declare(binds=("0", "1"))
def room_for_one_of_team(s: Situation) -> Steps:
    """Let a second node grow by what one member asks, so that the other may have the first node."""
    s.create_node()
    small = s.create_node("s", labels={f"{s.tag}-small": "yes"})
    s.create_objects(labelled(s.tag, 2))
    s.create_bound_pod("h", small, cpu="1900m")
    likes = {"matchExpressions": [{"key": f"{s.tag}-small", "operator": "Exists"}]}
    wish = {"weight": 100, "preference": likes}
    prefers = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}
    labels = {GROUP_LABEL: s.tag}
    s.create_pod("0", cpu="500m", affinity=prefers, labels=labels)
    s.create_pod("1", cpu="1900m", labels=labels)
    yield
    s.change_node(small, status={"allocatable": {"cpu": "2500m"}})


@TEAM_WAITS.declare(binds=("3", "4"), anyway=True)
def room_for_rest_of_team(s: Situation) -> Steps:
    """Let two members of a team that runs come again, with room for one of them.

    In mode ``permit`` one member holds that room until the other comes, which only an event wakes.
    The room comes by itself after a while, so that no member is held there when the script ends.
    """
    s.create_node()
    team = labelled(s.tag, 3)
    team["spec"]["scheduleTimeoutSeconds"] = 60
    s.create_objects(team)
    for suffix in "012":
        s.create_pod(suffix, **_teammate(s))
    s.wait_seconds(2.0)
    for suffix in "12":
        s.delete_pod(s.object_name(suffix))
    s.wait_seconds(3.0)
    holder = s.create_holder(cpu="1", activeDeadlineSeconds=40)
    for suffix in "34":
        s.create_pod(suffix, **_teammate(s))
    yield
    s.delete_pod(holder)
