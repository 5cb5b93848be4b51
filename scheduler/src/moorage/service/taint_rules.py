"""Takes in DeviceTaintRules: a changed rule is a change of the slices whose devices it taints.

Rules mirrored: kubernetes v1.37 ``staging/src/k8s.io/dynamic-resource-allocation/resourceslice``
(``tracker/tracker.go``): the queue gets an update of each slice whose taints change, and none of
the rule.
"""

from __future__ import annotations

from typing import Any

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.device_taint_rules import DeviceTaintRule, with_rule_taints
from moorage.service.facts import Facts
from moorage.service.ingest import ListerIngest
from moorage.service.kinds import DEVICE_TAINT_RULE, WatchedKind
from moorage.snapshot.listers import Listers
from moorage.state.queue import SchedulingQueue

_SLICE_UPDATE = ClusterEvent(Resource.RESOURCE_SLICE, Action.UPDATE)


def lister_ingest(
    kind: WatchedKind, listers: Listers, *, queue: SchedulingQueue, facts: Facts
) -> ListerIngest[Any]:
    """Return what takes in the objects of a kind."""
    if kind is DEVICE_TAINT_RULE:
        return TaintRuleIngest(listers, queue=queue, facts=facts)
    return ListerIngest(
        kind.resource.kind,
        getattr(listers, kind.lister),
        resource=kind.event,
        queue=queue,
        facts=facts,
    )


class TaintRuleIngest(ListerIngest[DeviceTaintRule]):
    """DeviceTaintRules to their lister, and the slices that they change to the queue.

    Parameters
    ----------
    listers
        Receives the rules, and has the slices.
    queue, facts
        As for other kinds.
    """

    def __init__(self, listers: Listers, *, queue: SchedulingQueue, facts: Facts) -> None:
        lister = listers.device_taint_rules
        super().__init__("DeviceTaintRule", lister, resource=None, queue=queue, facts=facts)
        self._slices = listers.resource_slices

    def on_add(self, obj: DeviceTaintRule) -> None:
        """Take in a rule that appeared."""
        super().on_add(obj)
        self._move_by_slices(None, obj)

    def on_update(self, old: DeviceTaintRule, new: DeviceTaintRule) -> None:
        """Take in a changed rule."""
        super().on_update(old, new)
        self._move_by_slices(old, new)

    def on_delete(self, obj: DeviceTaintRule, *, missed: bool) -> None:
        """Take in that a rule is gone."""
        super().on_delete(obj, missed=missed)
        self._move_by_slices(obj, None)

    def _move_by_slices(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        """Report each slice whose taints differ between two versions of a rule."""
        changed = [rule for rule in (old, new) if rule is not None]
        names = {rule.name for rule in changed}
        others = [rule for rule in self._lister.all() if rule.name not in names]
        for slice_ in self._slices.all():
            if not any(rule.concerns(slice_) for rule in changed):
                continue
            before = with_rule_taints(slice_, others if old is None else [*others, old])
            after = with_rule_taints(slice_, others if new is None else [*others, new])
            if before != after:
                began_ns = self._events.now_ns()
                self._queue.move_all(_SLICE_UPDATE, before, after)
                self._events.handled(_SLICE_UPDATE.label, since_ns=began_ns)
