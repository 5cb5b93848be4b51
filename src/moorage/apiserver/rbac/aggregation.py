"""Keeps the rules of cluster roles that are made of others.

Upstream a controller does this (kubernetes v1.36 pkg/controller/clusterroleaggregation); here the
rules follow every write at once.
"""

from __future__ import annotations

from moorage.api.resources import CLUSTER_ROLES
from moorage.apiserver.kind import Obj
from moorage.apiserver.record import Record
from moorage.apiserver.views import Served
from moorage.apiserver.world import World


class Aggregation:
    """Writes the rules of aggregated roles whenever a cluster role is written.

    Parameters
    ----------
    world
        Where the roles are.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._shelf = world.store.shelf(CLUSTER_ROLES.qualified)
        world.on_write(CLUSTER_ROLES.qualified, self._written)

    def _written(self, served: Served, before: Record | None, after: Record | None) -> None:
        del before, after
        # What is written here is told here again, so roles made of aggregated ones follow.
        for record in list(self._shelf.records()):
            role = record.decode()
            selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors")
            if not selectors:
                continue
            rules = self._rules(record.name, selectors)
            if rules != (role.get("rules") or []):
                role["rules"] = rules
                self._world.put(served, role)
                return

    def _rules(self, name: str, selectors: list[Obj]) -> list[Obj]:
        """Return the rules of all selected roles, each once, in the order of the roles."""
        rules: list[Obj] = []
        for record in self._shelf.records():
            if record.name == name or not any(_selects(each, record) for each in selectors):
                continue
            for rule in record.decode().get("rules") or ():
                if rule not in rules:
                    rules.append(rule)
        return rules


def _selects(selector: Obj, record: Record) -> bool:
    labels = selector.get("matchLabels") or {}
    if any(record.labels.get(key) != value for key, value in labels.items()):
        return False
    for wanted in selector.get("matchExpressions") or ():
        key, values = wanted["key"], wanted.get("values") or ()
        held = record.labels.get(key)
        fits = {
            "In": held in values and key in record.labels,
            "NotIn": held not in values,
            "Exists": key in record.labels,
            "DoesNotExist": key not in record.labels,
        }
        if not fits.get(wanted["operator"], False):
            return False
    return True
