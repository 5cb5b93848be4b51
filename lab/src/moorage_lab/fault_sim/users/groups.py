"""Users of pod groups: whole ones, and those that lack a member."""

from __future__ import annotations

from typing import Any

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS, GROUP_LABEL
from moorage.api.resources import POD_GROUPS
from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.users.plot import CLASSES, Maker, Plot
from moorage_lab.fault_sim.users.pods import a_pod
from moorage_sandbox.testing.builders import Manifest


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
