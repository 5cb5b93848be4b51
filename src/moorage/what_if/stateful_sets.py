"""Keeps the pods of StatefulSets in a rehearsal, with the planner of their controller."""

from __future__ import annotations

from moorage.api.codec import decode, from_dict
from moorage.api.pod import Pod
from moorage.base.errors import UsageError
from moorage.controllers.pods import is_active
from moorage.controllers.revisions import History, Revision
from moorage.controllers.stateful_steps import REVISION_LABEL, ordinal_of, plan
from moorage.controllers.views import Whole
from moorage.what_if.admission import Admission
from moorage.what_if.lists import Key, checked_pod
from moorage.what_if.live_objects import controller_of
from moorage.what_if.rehearsal import Rehearsal


class StatefulSets:
    """Makes and deletes pods whenever a pod of a set has changed.

    Parameters
    ----------
    rehearsal
        Holds the pods.
    admission
        Turns templates into pods.
    """

    def __init__(self, rehearsal: Rehearsal, admission: Admission) -> None:
        self._rehearsal = rehearsal
        self._admission = admission
        self._due: dict[Key, None] = {}
        rehearsal.listeners.append(self._pod_changed)

    def sync_soon(self, key: Key) -> None:
        """Look at a set a moment later, once."""
        if key not in self._due:
            self._due[key] = None
            self._rehearsal.soon(lambda: self._sync(key))

    def _pod_changed(self, pod: Pod) -> None:
        owner = controller_of(pod)
        if owner is not None and owner.kind == "StatefulSet":
            self.sync_soon((pod.namespace, owner.name))

    def _sync(self, key: Key) -> None:
        self._due.pop(key, None)
        text = self._rehearsal.objects.manifests.get(("apps", "StatefulSet"), {}).get(key)
        if text is None:
            return
        found = decode(Whole, text)
        pods = self._pods(found)
        due = plan(found, pods, _history(found, pods), self._rehearsal.now_ns)
        if due.claims and due.create:
            raise UsageError(
                f"StatefulSet {found.name} makes a volume claim for each pod, and volumes are "
                "not made here"
            )
        for pod in due.delete:
            self._rehearsal.leave(pod, returns=False)
        for body in due.create:
            self._rehearsal.add_pod(checked_pod(from_dict(Pod, self._admission.stored(body))))

    def _pods(self, found: Whole) -> dict[int, Pod]:
        uid, by_ordinal = found.metadata.uid, {}
        for pod in self._rehearsal.objects.pods.values():
            owner, ordinal = controller_of(pod), ordinal_of(found, pod.name)
            if owner is not None and owner.uid == uid and ordinal is not None:
                by_ordinal[ordinal] = pod
        return by_ordinal


def _history(found: Whole, pods: dict[int, Pod]) -> History:
    """Return a history of one revision: the one of the set's template."""
    name = str(found.status.get("updateRevision") or "")
    if not name:
        labels = [pod.metadata.labels for pod in pods.values() if is_active(pod)]
        name = next((each.get(REVISION_LABEL, "") for each in labels), "") or found.name
    template = {"spec": {"template": found.spec.get("template") or {}}}
    revision = from_dict(Revision, {"metadata": {"name": name}, "data": template})
    return History([revision], revision)
