"""Users of quotas: namespaces that borrow from one another, and a namespace that is bounded.

The namespaces `TEAMS` have an ElasticQuota each, which the scheduler looks after. The namespace
`BOUNDED` has a ResourceQuota, which the server looks after.
"""

from __future__ import annotations

from typing import Any

from moorage.api.resources import ELASTIC_QUOTAS
from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.users.groups import plain_spec
from moorage_lab.fault_sim.users.plot import CLASSES, Maker, Plot
from moorage_sandbox.testing.builders import Manifest

TEAMS = ("red", "green", "blue")
BOUNDED = "bounded"


def namespace(name: str) -> Manifest:
    """Return a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def elastic(name: str, least: str, most: str) -> Manifest:
    """Return the ElasticQuota of a namespace: the least and the most cpu."""
    return {
        "apiVersion": ELASTIC_QUOTAS.api_version,
        "kind": ELASTIC_QUOTAS.kind,
        "metadata": {"name": name, "namespace": name},
        "spec": {
            "min": {"cpu": least, "memory": "64Gi"},
            "max": {"cpu": most, "memory": "64Gi"},
        },
    }


def create_namespaces(plot: Plot) -> None:
    """Create the namespaces and their quotas at the start."""
    rng = plot.rng
    for name in TEAMS:
        plot.add_creation(namespace(name), at=1.0)
        least = rng.randint(1, 4)
        plot.add_creation(elastic(name, str(least), str(least + rng.randint(0, 4))), at=1.5)
    plot.add_creation(namespace(BOUNDED), at=1.0)
    plot.add_creation(_hard(3), at=1.5)


def _hard(count: int) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "hard", "namespace": BOUNDED},
        "spec": {"hard": {"pods": str(count)}},
    }


def _team_pod(plot: Plot) -> None:
    rng = plot.rng
    team = rng.choice(TEAMS)
    for _ in range(rng.choice((1, 1, 2, 4))):
        name = plot.name("t")
        spec = plain_spec(rng.choice(("250m", "500m", "1", "2")))
        if rng.random() < 0.4:
            spec["priorityClassName"] = rng.choice(tuple(CLASSES))
        plot.add_creation(_pod(name, team, spec))
        plot.notes.setdefault("team pods", []).append(f"{team}/{name}")


def _pod(name: str, where: str, spec: dict[str, Any]) -> Manifest:
    meta = {"name": name, "namespace": where}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _team_pod_goes(plot: Plot) -> None:
    pods = plot.notes.get("team pods", [])
    if pods:
        team, _, name = pods.pop(plot.rng.randrange(len(pods))).partition("/")
        plot.add_deletion("Pod", name, namespace=team)


def _quota_moves(plot: Plot) -> None:
    """Give a namespace other bounds; less than its pods use is allowed."""
    rng = plot.rng
    team, least = rng.choice(TEAMS), rng.randint(0, 5)
    spec = elastic(team, str(least), str(least + rng.randint(0, 4)))["spec"]
    plot.acts.append(changed(plot, team, spec))


def changed(plot: Plot, team: str, spec: dict[str, Any]) -> acts.Patch:
    """Return the change of an ElasticQuota."""
    return acts.Patch(
        at=plot.now,
        kind=ELASTIC_QUOTAS.kind,
        name=team,
        namespace=team,
        changes={"spec": spec},
        api_version=ELASTIC_QUOTAS.api_version,
    )


def deleted(plot: Plot, team: str) -> acts.Delete:
    """Return the deletion of an ElasticQuota."""
    return acts.Delete(
        at=plot.now,
        kind=ELASTIC_QUOTAS.kind,
        name=team,
        namespace=team,
        api_version=ELASTIC_QUOTAS.api_version,
    )


def _quota_goes(plot: Plot) -> None:
    """Delete a quota; later its namespace gets another one."""
    rng, team = plot.rng, plot.rng.choice(TEAMS)
    plot.acts.append(deleted(plot, team))
    plot.add_creation(elastic(team, "2", str(rng.randint(2, 6))), at=plot.now + rng.uniform(0, 5))


def _bounded_set(plot: Plot) -> None:
    """Create a ReplicaSet in the bounded namespace, which may exceed the quota there."""
    name = plot.name("r")
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": plain_spec("250m")}
    template["spec"].pop("terminationGracePeriodSeconds")
    count = plot.rng.randint(1, 4)
    spec = {"replicas": count, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": name, "namespace": BOUNDED}
    plot.add_creation(
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec}
    )
    plot.notes.setdefault("bounded sets", []).append(name)


def _bounded_set_goes(plot: Plot) -> None:
    if sets := plot.notes.get("bounded sets"):
        plot.add_deletion("ReplicaSet", sets.pop(), namespace=BOUNDED)


def _bound_moves(plot: Plot) -> None:
    hard = {"spec": {"hard": {"pods": str(plot.rng.randint(1, 6))}}}
    plot.add_change("ResourceQuota", "hard", hard, namespace=BOUNDED)


QUOTAS: tuple[Maker, ...] = (
    *([_team_pod] * 14),
    *([_team_pod_goes] * 6),
    *([_quota_moves] * 4),
    _quota_goes,
    *([_bounded_set] * 2),
    _bounded_set_goes,
    _bound_moves,
)
"""The doings of users with quotas, each as often as it stands here."""
