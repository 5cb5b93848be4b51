"""Users of pod groups: whole ones, late ones, and those whose last thing comes at the end."""

from __future__ import annotations

from typing import Any

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS, GROUP_LABEL
from moorage.api.resources import POD_GROUPS
from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.users.plot import CLASSES, Maker, Plot
from moorage_lab.fault_sim.users.pods import a_pod
from moorage_lab.fault_sim.users.waits import SatisfiedWait, own_node, own_pod
from moorage_sandbox.testing.builders import Manifest, pod_manifest


def gang(name: str, least: int) -> Manifest:
    """Return a group of Kubernetes that needs so many pods."""
    return {
        "apiVersion": POD_GROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": least}}},
    }


def _member(name: str) -> dict[str, Any]:
    return {"schedulingGroup": {"podGroupName": name}}


def _gang(plot: Plot) -> None:
    """Create a gang of equal pods, in any order, whole or one short."""
    rng, name = plot.rng, plot.name("gang")
    count = rng.randint(2, 4)
    least = count - (rng.random() < 0.3)
    cpu, fields = rng.choice(("250m", "1", "1500m")), _member(name)
    if rng.random() < 0.3:
        fields["priorityClassName"] = rng.choice(tuple(CLASSES))
    before = rng.random() < 0.7
    if before:
        plot.add_creation(gang(name, least))
    for number in range(count):
        pod = a_pod(rng, f"{name}-{number}", name)
        pod["spec"] = {**plain_spec(cpu), **fields}
        plot.add_creation(pod)
        plot.pods.append(f"{name}-{number}")
        plot.now += rng.choice((0.0, 0.001, 0.5))
    if not before:
        plot.add_creation(gang(name, least))
    plot.groups.append(name)


def plain_spec(cpu: str) -> dict[str, Any]:
    """Return the spec of a pod with one container."""
    requests = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    container = {"name": "main", "image": "registry.example/app:1", "resources": requests}
    return {"containers": [container], "terminationGracePeriodSeconds": 1}


def _drop_group(plot: Plot) -> None:
    if plot.groups:
        name = plot.groups.pop(plot.rng.randrange(len(plot.groups)))
        plot.acts.append(_deletion(plot, name))


def _deletion(plot: Plot, name: str) -> acts.Delete:
    return acts.Delete(at=plot.now, kind="PodGroup", name=name, api_version=POD_GROUPS.api_version)


GROUPS: tuple[Maker, ...] = (_gang, _gang, _gang, _drop_group)
"""The doings of users with groups of Kubernetes, each as often as it stands here."""


def _group_comes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    for number in range(2):
        own_pod(plot, tag, f"{tag}-{number}", cpu="500m", **_member(tag))
    return lambda later: later.add_creation(gang(tag, 2))


def _member_comes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    plot.add_creation(gang(tag, 3))
    for number in range(2):
        own_pod(plot, tag, f"{tag}-{number}", cpu="500m", **_member(tag))

    def enable_binding(later: Plot) -> None:
        own_pod(later, tag, f"{tag}-last", cpu="500m", **_member(tag))

    return enable_binding


def _room_for_all(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    plot.add_creation(gang(tag, 2))
    holder = own_pod(plot, tag, f"{tag}-h", cpu="500m")
    plot.now += 1.0
    for number in range(2):
        own_pod(plot, tag, f"{tag}-{number}", cpu="1", **_member(tag))
    return lambda later: later.add_deletion("Pod", holder)


def _room_without_leaver(plot: Plot, tag: str) -> Maker:
    """Let room come for a gang whose first member is being deleted, and held by a finalizer."""
    own_node(plot, tag)
    plot.add_creation(gang(tag, 2))
    holder = own_pod(plot, tag, f"{tag}-h", cpu="500m")
    plot.now += 1.0
    for number in range(3):
        pod = pod_manifest(f"{tag}-{number}", cpu="1", memory="64Mi", node_selector={"wait": tag})
        pod["spec"] |= _member(tag)
        if number == 0:
            pod["metadata"]["finalizers"] = ["example.com/slow"]
        plot.add_creation(pod)
        plot.now += 0.3
    plot.now += 1.0
    plot.add_deletion("Pod", f"{tag}-0")
    return lambda later: later.add_deletion("Pod", holder)


def _gang_in_vain(plot: Plot, tag: str) -> Maker:
    """Let a gang wait for room that never comes; a member that waited is deleted."""
    own_node(plot, tag)
    plot.add_creation(gang(tag, 2))
    for number in range(3):
        own_pod(plot, tag, f"{tag}-{number}", **_member(tag))
    plot.now += 1.0
    return lambda later: later.add_deletion("Pod", f"{tag}-0")


GANGS_IN_VAIN: tuple[SatisfiedWait, ...] = (_gang_in_vain,)
"""The groups that wait until the end."""


def _member_fails(plot: Plot, tag: str) -> Maker:
    """Let bindings of some members fail, while another pod comes for their room."""
    own_node(plot, tag)
    plot.add_creation(gang(tag, 3))

    def enable_binding(later: Plot) -> None:
        later.disturb(("error-500", 0.5), seconds=1.0)
        for number in range(3):
            own_pod(later, tag, f"{tag}-{number}", cpu="600m", **_member(tag))
            later.now -= 0.3
        later.now += 0.1
        own_pod(later, tag, f"{tag}-other", cpu="600m")

    return enable_binding


def _room_as_one_goes(plot: Plot, tag: str) -> Maker:
    """Let one moment of the watch tell of room for a gang, and that a member is gone."""
    return _room_without_one(plot, tag, finalizers=[])


def _room_as_one_leaves(plot: Plot, tag: str) -> Maker:
    """Let one moment of the watch tell of room for a gang, and that a member is being deleted."""
    return _room_without_one(plot, tag, finalizers=["example.com/slow"])


def _room_without_one(plot: Plot, tag: str, *, finalizers: list[str]) -> Maker:
    """Nothing is tried between the two news; the member that leaves is the one that room wakes.

    No member has a node on trial: one that has comes back by backoff, without an event.
    """
    own_node(plot, tag)
    plot.add_creation(gang(tag, 2))
    holder = own_pod(plot, tag, f"{tag}-h", cpu="1500m", terminationGracePeriodSeconds=0)
    plot.now += 1.0
    for number in range(3):
        pod = pod_manifest(f"{tag}-{number}", cpu="1", memory="64Mi", node_selector={"wait": tag})
        pod["spec"] |= _member(tag)
        pod["metadata"]["finalizers"] = finalizers
        plot.add_creation(pod)
        plot.now += 0.3
    plot.now += 1.0

    def enable_binding(later: Plot) -> None:
        later.disturb(("watch-batched", 1.0), seconds=2.0)
        later.add_deletion("Pod", holder)
        later.now += 0.01
        later.add_deletion("Pod", f"{tag}-0")

    return enable_binding


GROUP_TROUBLE: tuple[SatisfiedWait, ...] = (_member_fails, _room_as_one_goes, _room_as_one_leaves)
"""The ways of groups that fail late."""

GROUP_WAITS: tuple[SatisfiedWait, ...] = (
    _group_comes,
    _member_comes,
    _room_for_all,
    _room_without_leaver,
)
"""The things that groups of Kubernetes can wait for."""


def labelled(name: str, least: int) -> Manifest:
    """Return a group of coscheduling that needs so many pods."""
    return {
        "apiVersion": COSCHEDULING_POD_GROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": least, "scheduleTimeoutSeconds": 20},
    }


def _team(plot: Plot) -> None:
    """Create a group of coscheduling with its pods, in any order."""
    rng, name = plot.rng, plot.name("team")
    count = rng.randint(2, 4)
    makers = [labelled(name, count)]
    for number in range(count):
        pod = a_pod(rng, f"{name}-{number}", name)
        pod["metadata"]["labels"] = {GROUP_LABEL: name}
        pod["spec"] = plain_spec(rng.choice(("250m", "1", "1500m")))
        makers.append(pod)
        plot.pods.append(f"{name}-{number}")
    for each in rng.sample(makers, len(makers)):
        plot.add_creation(each)
        plot.now += rng.choice((0.0, 0.001, 0.5))


TEAMS: tuple[Maker, ...] = (_team, _team, _team)
"""The doings of users with groups of coscheduling."""


def _teammate(tag: str) -> dict[str, Any]:
    return {"cpu": "500m", "labels": {GROUP_LABEL: tag}}


def _team_comes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    for number in range(2):
        own_pod(plot, tag, f"{tag}-{number}", **_teammate(tag))
    return lambda later: later.add_creation(labelled(tag, 2))


def _teammate_comes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    plot.add_creation(labelled(tag, 3))
    for number in range(2):
        own_pod(plot, tag, f"{tag}-{number}", **_teammate(tag))

    def enable_binding(later: Plot) -> None:
        own_pod(later, tag, f"{tag}-last", **_teammate(tag))

    return enable_binding


def _room_for_team(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    plot.add_creation(labelled(tag, 2))
    holder = own_pod(plot, tag, f"{tag}-h", cpu="1500m")
    plot.now += 1.0
    for number in range(2):
        own_pod(plot, tag, f"{tag}-{number}", **_teammate(tag))
    return lambda later: later.add_deletion("Pod", holder)


def _room_for_one_of_team(plot: Plot, tag: str) -> Maker:
    """Let a second node grow by what one member asks, so that the other may have the first node."""
    own_node(plot, tag)
    small = own_node(plot, tag, name=f"{tag}-s", labels={f"{tag}-small": "yes"})
    plot.add_creation(labelled(tag, 2))
    own_pod(plot, tag, f"{tag}-h", node_name=small, schedulerName="other", cpu="1900m")
    likes = {"matchExpressions": [{"key": f"{tag}-small", "operator": "Exists"}]}
    wish = {"weight": 100, "preference": likes}
    prefers = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}
    labels = {"labels": {GROUP_LABEL: tag}}
    own_pod(plot, tag, f"{tag}-0", cpu="500m", affinity=prefers, **labels)
    own_pod(plot, tag, f"{tag}-1", cpu="1900m", **labels)
    more = {"status": {"allocatable": {"cpu": "2500m"}}}
    return lambda later: later.add_change("Node", small, more, namespace="", subresource="status")


def _room_for_rest_of_team(plot: Plot, tag: str) -> Maker:
    """Let two members of a team that runs come again, with room for one of them.

    In mode ``permit`` one member holds that room until the other comes, which only an event wakes.
    The room comes by itself after a while, so that no member is held there when the script ends.
    """
    own_node(plot, tag)
    team = labelled(tag, 3)
    team["spec"]["scheduleTimeoutSeconds"] = 60
    plot.add_creation(team)
    for number in range(3):
        own_pod(plot, tag, f"{tag}-{number}", **_teammate(tag))
    plot.now += 2.0
    for number in (1, 2):
        plot.add_deletion("Pod", f"{tag}-{number}")
    plot.now += 3.0
    holder = own_pod(plot, tag, f"{tag}-h", cpu="1", activeDeadlineSeconds=40)
    plot.now += 1.0
    for number in (3, 4):
        own_pod(plot, tag, f"{tag}-{number}", **_teammate(tag))
    return lambda later: later.add_deletion("Pod", holder)


TEAM_WAITS: tuple[SatisfiedWait, ...] = (
    _team_comes,
    _teammate_comes,
    _room_for_team,
    _room_for_one_of_team,
    _room_for_rest_of_team,
)
"""The things that groups of coscheduling can wait for."""
