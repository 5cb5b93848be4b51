"""The bounds of namespaces in a model: ResourceQuotas and LimitRanges, and pods they refuse.

A pod that is refused is made later, as its controller would: at once when a pod of the same owner
has changed, otherwise when the controller tries again.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from moorage.api.codec import decode_untyped, from_dict, to_dict
from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND
from moorage.base.errors import UsageError
from moorage.kinds.quotas.limit_range import default_from_limit_ranges, limit_faults
from moorage.virtual.effects import CALL_SECONDS
from moorage.virtual.kinds import kind_of as kind_rules
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import Key, checked_pod, is_finished
from moorage.virtual.owner_kinds import DAEMON_SET, kind_of
from moorage.what_if.rules.admission import Admission, NotStoredError
from moorage.what_if.rules.quotas import Quotas

_RANGES: Final = ("", "LimitRange")
# kubernetes v1.36 client-go util/workqueue: the first backoff of a controller after a failure;
# each further one is twice as long.
_FIRST_BACKOFF_SECONDS: Final = 0.005
# A controller backs off for up to 1000 s. Here a shorter time stands for it, because a model
# would end before.
_BACKOFF_SECONDS_MAX: Final = 100.0
# Longer than a pod takes to be placed: a guess.
_APART_SECONDS: Final = 1.0


class Refused(msgspec.Struct, frozen=True):
    """A pod that its owner cannot make.

    Parameters
    ----------
    pod
        The pod.
    reason
        Why it is refused.
    invalid
        Whether it is refused for what it is, so that waiting for room does not help.
    """

    pod: Pod
    reason: str
    invalid: bool = False


class Bounds:
    """Decides whether namespaces take new objects, and keeps the pods that wait for that.

    Parameters
    ----------
    model
        Has the objects, and puts pods.
    admission
        Looks limit ranges up.

    Attributes
    ----------
    refused
        The pods that owners want to make, in order.
    is_contended
        Whether several owners waited for the same room of a namespace, so that the order of their
        next tries may matter.
    """

    def __init__(self, model: ClusterModel, admission: Admission) -> None:
        self._model = model
        self._objects = model.objects
        self._admission = admission
        self._quotas = Quotas(model.objects)
        self.refused: dict[Key, Refused] = {}
        self.is_contended = False
        # Uid of an owner -> when its first pod was refused, and when it tries again.
        self._failing_ns: dict[str, int] = {}
        self._tries_ns: dict[str, int] = {}
        model.changes.append(self._pod_changed)
        model.remake = self.remake

    def continue_from(self, earlier: Bounds) -> None:
        """Take over the pods that wait, and since when, under another configuration."""
        self.refused.update(earlier.refused)
        self._failing_ns.update(earlier._failing_ns)
        self.is_contended = earlier.is_contended

    # --- asking ---------------------------------------------------------------------------------

    def fault(self, shelf: str, obj: Mapping[str, Any]) -> str:
        """Return why the namespace of a new object would refuse it, "" if it would not.

        Parameters
        ----------
        shelf
            Resource with its group, ``deployments.apps``.
        """
        return self._range_fault(shelf, dict(obj)) or self._quotas.fault(shelf, dict(obj))

    def pod_fault(self, pod: Pod) -> str:
        """Return why its namespace would refuse another pod like this one, "" if it would not."""
        if not (self._has_ranges(pod.namespace) or self._quotas.bounds(pod.namespace)):
            return ""
        return self.fault("pods", to_dict(pod))

    def count(self, shelf: str, obj: Mapping[str, Any], sign: int = 1) -> None:
        """Count an object that came, or that is gone."""
        self._quotas.count(shelf, dict(obj), sign)

    def _range_fault(self, shelf: str, obj: dict[str, Any]) -> str:
        if not self._has_ranges(obj["metadata"].get("namespace") or ""):
            return ""
        if shelf not in ("pods", "persistentvolumeclaims"):
            return ""
        faults = limit_faults(shelf, obj, self._limit_ranges(obj))
        return faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]" if faults else ""

    def _has_ranges(self, namespace: str) -> bool:
        return any(key[0] == namespace for key in self._objects.manifests.get(_RANGES, {}))

    def _limit_ranges(self, obj: dict[str, Any]) -> list[dict[str, Any]]:
        namespace = obj["metadata"].get("namespace") or ""
        return list(self._admission.stored_objects("limitranges", namespace))

    # --- making pods ----------------------------------------------------------------------------

    def make(self, body: dict[str, Any]) -> None:
        """Put a pod as its owner sends it, or keep it as refused."""
        try:
            pod = checked_pod(from_dict(Pod, self._admission.stored(body)))
        except NotStoredError as error:
            self.refuse_body(body, error.why)
        except UsageError as error:
            self.refuse_body(body, str(error))
        else:
            self._put_pod(pod)

    def refuse_body(self, body: dict[str, Any], why: str) -> None:
        """Keep a pod as refused that cannot be made for what it is, or for want of its claims."""
        pod = from_dict(Pod, body)
        if not pod.name:
            name = f"{body['metadata']['generateName']}{len(self.refused)}"
            metadata = msgspec.structs.replace(pod.metadata, name=name)
            pod = msgspec.structs.replace(pod, metadata=metadata)
        self._refuse(pod, why, invalid=True)

    def remake(self, pod: Pod) -> None:
        """Put the pod that an owner makes for a pod that leaves; admission sees it anew."""
        if not (self._has_ranges(pod.namespace) or self._admission.asks_policies):
            self._put_pod(pod)
            return
        body = self._body_of(pod)
        if body is not None:
            self.make(body)
            return
        # Without the template there is only the old pod, in which limits may be missing.
        obj = to_dict(pod)
        default_from_limit_ranges(obj, self._limit_ranges(obj))
        made = from_dict(Pod, obj)
        if why := self._admission.policy_fault(obj):
            self._refuse(made, why, invalid=True)
        else:
            self._put_pod(made)

    def _body_of(self, pod: Pod) -> dict[str, Any] | None:
        """Return a pod as its owner would send it; None without the owner's template."""
        owner = pod.metadata.controller
        if owner is None:
            return None
        text = self._objects.manifests.get(kind_of(owner), {}).get((pod.namespace, owner.name))
        spec = {} if text is None else decode_untyped(text).get("spec") or {}
        template = (spec.get("template") or {}).get("spec")
        if template is None:
            return None
        old = to_dict(pod)
        if kind_of(owner) == DAEMON_SET:
            # These say which node the pod is for.
            pinned = ("affinity", "tolerations")
            template |= {name: old["spec"][name] for name in pinned if name in old["spec"]}
        names = ("name", "namespace", "labels", "annotations", "ownerReferences")
        metadata = {name: old["metadata"][name] for name in names if name in old["metadata"]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template}

    def _put_pod(self, pod: Pod) -> None:
        why = self.pod_fault(pod)
        if why:
            self._refuse(pod, why, invalid=bool(self._range_fault("pods", to_dict(pod))))
        elif pod.key not in self._objects.pods:
            self.refused.pop(pod.key, None)
            self._model.add_pod(pod)

    def _refuse(self, pod: Pod, why: str, *, invalid: bool = False) -> None:
        self.refused[pod.key] = Refused(pod, why, invalid)
        owner = pod.metadata.controller
        if owner is not None and not invalid:
            self._failing_ns.setdefault(owner.uid, self._model.virtual_now_ns)

    def stored_claim(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a claim of a pod as it would be stored, and count it.

        Raises
        ------
        UsageError
            The claim would be refused.
        """
        claim, resource = self._admission.stored(body), kind_rules(body).resource
        why = self.fault(resource.qualified, claim)
        if why:
            name = claim["metadata"]["name"]
            raise UsageError(f"{resource.kind} {name} would be refused: {why}")
        self.count(resource.qualified, claim)
        return claim

    def refused_of(self, owner_uid: str) -> list[Key]:
        """Return the refused pods of an owner, the oldest first."""
        return [
            key
            for key, each in self.refused.items()
            if (owner := each.pod.metadata.controller) is not None and owner.uid == owner_uid
        ]

    def forget_refused(self, owner_uid: str, *, most: int = 0) -> None:
        """Forget pods that an owner does not want any more, all but the oldest few."""
        for key in self.refused_of(owner_uid)[most:]:
            del self.refused[key]

    def forget_others(self, owner_uid: str, names: Collection[str]) -> None:
        """Forget the refused pods of an owner, apart from pods of these names."""
        for key in self.refused_of(owner_uid):
            if key[1] not in names:
                del self.refused[key]

    def bounds_changed(self, namespace: str) -> None:
        """Take in that the bounds of a namespace have changed; its owners try again.

        Invalid pods are forgotten: their owners have to make them anew.
        """
        self._quotas.refresh()
        for key, each in list(self.refused.items()):
            if key[0] == namespace and each.invalid:
                del self.refused[key]
        self._room_came(namespace)

    # --- trying again ---------------------------------------------------------------------------

    def _room_came(self, namespace: str, owner_uid: str = "") -> None:
        """Let the owners of refused pods try again; the owner of a pod that is gone comes first."""
        waiting = {
            owner.uid: None
            for key, each in self.refused.items()
            if key[0] == namespace and (owner := each.pod.metadata.controller) is not None
        }
        owners = [uid for uid in self._failing_ns if uid in waiting]
        if owner_uid in owners:
            self._try_at(owner_uid, self._a_call_later)
            owners.remove(owner_uid)
        self.is_contended |= len(owners) > 1
        order = self._model.order.arrange(owners)
        dues = self._next_tries_ns(owners)
        for uid, due_ns in zip(order, dues, strict=True):
            self._try_at(uid, due_ns)

    def _next_tries_ns(self, owners: Sequence[str]) -> list[int]:
        """Return when the controllers of owners try again by themselves, the first of them first.

        What they have tried before the model is not known. So two long backoffs do not end
        together, though both count from its begin.
        """
        now_ns, tries_ns = self._model.virtual_now_ns, list[int]()
        for backoff in sorted(self._backoff_seconds(uid) for uid in owners):
            due_ns = now_ns + round(backoff * NS_PER_SECOND)
            if tries_ns and backoff > _APART_SECONDS:
                due_ns = max(due_ns, tries_ns[-1] + round(_APART_SECONDS * NS_PER_SECOND))
            tries_ns.append(due_ns)
        return tries_ns

    def _backoff_seconds(self, owner_uid: str) -> float:
        """Return the time until the controller of an owner tries again, seconds."""
        passed = (self._model.virtual_now_ns - self._failing_ns[owner_uid]) / NS_PER_SECOND
        tries = math.floor(math.log2(passed / _FIRST_BACKOFF_SECONDS + 1)) + 1
        left: float = _FIRST_BACKOFF_SECONDS * (2**tries - 1) - passed
        return min(left, _BACKOFF_SECONDS_MAX)

    def _try_at(self, owner_uid: str, due_ns: int, *, batch: int = 1) -> None:
        known = self._tries_ns.get(owner_uid)
        if known is None or due_ns < known:
            self._tries_ns[owner_uid] = due_ns
            self._model.call_at(due_ns, partial(self._try_again, owner_uid, due_ns, batch))

    def _try_again(self, owner_uid: str, due_ns: int, batch: int) -> None:
        """Make a batch of the refused pods of an owner, and soon twice as many, if all is well.

        kubernetes v1.36 pkg/controller/replicaset, slowStartBatch: one pod, then two, then four.
        """
        if self._tries_ns.get(owner_uid) != due_ns:
            return  # it has tried already
        del self._tries_ns[owner_uid]
        keys = [key for key in self.refused_of(owner_uid) if not self.refused[key].invalid]
        for key in keys[:batch]:
            self._put_pod(self.refused[key].pod)
        if any(key in self.refused for key in keys[:batch]):
            return
        if keys[batch:]:
            self._try_at(owner_uid, self._a_call_later, batch=2 * batch)
        else:
            self._failing_ns.pop(owner_uid, None)

    @property
    def _a_call_later(self) -> int:
        seconds = CALL_SECONDS + self._model.order.delay_seconds()
        return self._model.virtual_now_ns + round(seconds * NS_PER_SECOND)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        assert pod is not None, "a change is about something"
        if self._quotas.bounds(pod.namespace) and _counts_otherwise(old, new):
            for each, sign in ((old, -1), (new, 1)):
                if each is not None:
                    self.count("pods", to_dict(each), sign)
        if self.refused:
            owner = pod.metadata.controller
            uid = "" if owner is None else owner.uid
            if new is None or is_finished(new):
                self._room_came(pod.namespace, uid)
            elif uid in self._tries_ns:
                self._try_at(uid, self._a_call_later)


def _counts_otherwise(old: Pod | None, new: Pod | None) -> bool:
    """Whether a quota may count another version of a pod in another way."""
    return (
        old is None
        or new is None
        or (old.spec, old.status.phase, old.status.qos_class)
        != (new.spec, new.status.phase, new.status.qos_class)
    )
