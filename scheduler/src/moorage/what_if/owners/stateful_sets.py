"""Keeps the pods of StatefulSets in a model, with the planner of their controller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from moorage.api.codec import decode, from_dict
from moorage.api.pod import Pod
from moorage.api.volume import PersistentVolumeClaim
from moorage.base.errors import UsageError
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import Key
from moorage.what_if.rules.bounds import Bounds
from moorage.workloads.objects import Whole
from moorage.workloads.pods import is_active
from moorage.workloads.revisions import History, Revision
from moorage.workloads.stateful_steps import (
    REVISION_LABEL,
    Plan,
    is_healthy,
    ordinal_of,
    ordinals,
    plan,
)

_CLAIMS: Final = "persistent_volume_claims"


class StatefulSets:
    """Makes and deletes pods whenever a pod of a set has changed.

    Like its controller, it decides by the pods that it sees when it looks at a set. What it decides
    is there a call later, and until then it does not look at that set again.

    Parameters
    ----------
    model
        Holds the pods.
    bounds
        Puts pods as their namespaces allow.
    """

    def __init__(self, model: ClusterModel, bounds: Bounds) -> None:
        self._model = model
        self._bounds = bounds
        # Sets that have changed since the last look, and sets that are being worked on.
        self._changed: set[Key] = set()
        self._at_work: set[Key] = set()
        model.listeners.append(self._pod_changed)

    def sync_soon(self, key: Key) -> None:
        """Look at a set when everything of this moment has happened, or when its work is done."""
        self._changed.add(key)
        if key not in self._at_work:
            self._at_work.add(key)
            self._model.call_at(self._model.virtual_now_ns, lambda: self._look(key))

    def reason_missing(self, pod: Pod) -> str:
        """Return why a set has not made a pod that it wants; "" for one that it does not want."""
        owner = pod.metadata.controller
        kind = "" if owner is None else owner.kind
        text = None if owner is None else self._text((pod.namespace, owner.name))
        if kind != "StatefulSet" or text is None:
            return ""
        stateful_set = decode(Whole, text)
        ordinal, all_wanted = ordinal_of(stateful_set, pod.name), ordinals(stateful_set)
        in_order = stateful_set.spec.get("podManagementPolicy") != "Parallel"
        if ordinal is None or ordinal not in all_wanted or not in_order:
            return ""
        pods, now_ns = self._pods(stateful_set), self._model.virtual_now_ns
        for earlier in range(all_wanted.start, ordinal):
            if earlier not in pods or not is_healthy(stateful_set, pods[earlier], now_ns):
                name = f"{stateful_set.name}-{earlier}"
                return f"its StatefulSet makes pods in order, and {name} is not ready"
        return ""

    def _pod_changed(self, pod: Pod) -> None:
        owner = pod.metadata.controller
        if owner is not None and owner.kind == "StatefulSet":
            self.sync_soon((pod.namespace, owner.name))

    def _look(self, key: Key) -> None:
        self._changed.discard(key)
        due = self._due(key)
        if due.delete or due.create:
            self._model.soon(lambda: self._carry_out(key, due))
        else:
            self._at_work.discard(key)

    def _due(self, key: Key) -> Plan:
        text = self._text(key)
        if text is None:
            return Plan()
        stateful_set = decode(Whole, text)
        pods = self._pods(stateful_set)
        due = plan(stateful_set, pods, _history(stateful_set, pods), self._model.virtual_now_ns)
        # A set in order makes one pod at a time. A pod that was refused is due no more if an
        # earlier pod of the set is gone since.
        names = {body["metadata"]["name"] for body in due.create}
        self._bounds.forget_others(stateful_set.metadata.uid, names)
        return due

    def _carry_out(self, key: Key, due: Plan) -> None:
        for pod in due.delete:
            self._model.leave(pod, returns=False)
        # The pods of a set that is gone by now would be collected at once.
        if self._text(key) is not None:
            refusals = {name: self._make_claims(claims) for name, claims in due.claims.items()}
            for body in due.create:
                refusal = refusals[body["metadata"]["name"]]
                if refusal:
                    self._bounds.refuse_body(body, refusal)
                else:
                    self._bounds.make(body)
        self._at_work.discard(key)
        if key in self._changed:
            self.sync_soon(key)

    def _make_claims(self, bodies: Sequence[dict[str, Any]]) -> str:
        """Make the volume claims of a pod that do not exist yet; return why one is refused."""
        for body in bodies:
            key = (body["metadata"]["namespace"], body["metadata"]["name"])
            if key in self._model.objects.lister(_CLAIMS):
                continue
            try:
                claim = self._bounds.stored_claim(body)
            except UsageError as refusal:
                return str(refusal)
            self._model.put_object(_CLAIMS, key, from_dict(PersistentVolumeClaim, claim))
        return ""

    def _text(self, key: Key) -> bytes | None:
        return self._model.objects.manifests.get(("apps", "StatefulSet"), {}).get(key)

    def _pods(self, stateful_set: Whole) -> dict[int, Pod]:
        uid, by_ordinal = stateful_set.metadata.uid, {}
        for pod in self._model.objects.pods.values():
            owner, ordinal = pod.metadata.controller, ordinal_of(stateful_set, pod.name)
            if owner is not None and owner.uid == uid and ordinal is not None:
                by_ordinal[ordinal] = pod
        return by_ordinal


def with_claims_of_its_own(spec: dict[str, Any], stateful_set: Whole) -> dict[str, Any]:
    """Return the spec of a pod of a set with volumes that bring along a claim for that pod alone.

    They stand for the claims that the set makes for each of its pods. So it can be counted how many
    more pods there is room for, while nobody makes the set larger.
    """
    templates = stateful_set.spec.get("volumeClaimTemplates") or []
    names = {each["metadata"]["name"] for each in templates}
    own = [
        {
            "name": each["metadata"]["name"],
            "ephemeral": {
                "volumeClaimTemplate": {
                    "metadata": {"labels": each["metadata"].get("labels") or {}},
                    "spec": each["spec"],
                }
            },
        }
        for each in templates
    ]
    others = [each for each in spec.get("volumes") or [] if each["name"] not in names]
    return {**spec, "volumes": [*own, *others]}


def _history(stateful_set: Whole, pods: dict[int, Pod]) -> History:
    """Return a history of one revision: the one of the set's template."""
    name = str(stateful_set.status.get("updateRevision") or "")
    if not name:
        labels = [pod.metadata.labels for pod in pods.values() if is_active(pod)]
        name = next((each.get(REVISION_LABEL, "") for each in labels), "") or stateful_set.name
    template = {"spec": {"template": stateful_set.spec.get("template") or {}}}
    revision = from_dict(Revision, {"metadata": {"name": name}, "data": template})
    return History([revision], revision)
