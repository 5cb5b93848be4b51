"""The bounds of namespaces in a rehearsal: ResourceQuotas and LimitRanges, and pods they refuse.

The rules are those of the embedded API server. A quota's use begins with its status, because a
scheduler does not know every object that counts; from there on it follows the pods. A pod that is
refused is made later, when a pod of its namespace is gone: its controller tries again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from moorage.api.codec import decode_untyped, from_dict, to_dict
from moorage.api.pod import Pod
from moorage.api.quantity import parse_quantity
from moorage.api.resources import RESOURCES
from moorage.apiserver.kinds.limit_range import limit_faults
from moorage.apiserver.kinds.quota_rules import quota_fault
from moorage.apiserver.kinds.usage import matches_scopes, usage
from moorage.base.errors import UsageError
from moorage.what_if.admission import Admission
from moorage.what_if.lists import Key, checked_pod
from moorage.what_if.rehearsal import Rehearsal

_QUOTAS: Final = ("", "ResourceQuota")
_RANGES: Final = ("", "LimitRange")
_PLURALS: Final = {(each.group, each.kind): each.qualified for each in RESOURCES}


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
    rehearsal
        Has the objects, and puts pods.
    admission
        Looks limit ranges up.

    Attributes
    ----------
    refused
        The pods that owners want to make, in order.
    """

    def __init__(self, rehearsal: Rehearsal, admission: Admission) -> None:
        self._rehearsal = rehearsal
        self._objects = rehearsal.objects
        self._admission = admission
        # Quota -> its hard bounds when it was counted, and the use of each, nano units.
        self._used: dict[Key, tuple[dict[str, Any], dict[str, int]]] = {}
        self.refused: dict[Key, Refused] = {}
        self._retries: set[str] = set()
        self.refresh()
        rehearsal.changes.append(self._pod_changed)
        rehearsal.create = self.create

    # --- asking ---------------------------------------------------------------------------------

    def fault(self, shelf: str, obj: Mapping[str, Any]) -> str:
        """Return why the namespace of a new object would refuse it, "" if it would not.

        Parameters
        ----------
        shelf
            Resource with its group, ``deployments.apps``.
        """
        namespace = obj["metadata"].get("namespace") or ""
        if self._objects.manifests.get(_RANGES) and shelf in ("pods", "persistentvolumeclaims"):
            faults = limit_faults(shelf, dict(obj), self._admission)
            if faults:
                return faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
        for key in self._quotas():
            if key[0] == namespace:
                quota = self._quota(key)
                why = quota_fault(quota, self._use_of(key, quota), shelf, new=dict(obj), old=None)
                if why:
                    return why
        return ""

    def pod_fault(self, pod: Pod) -> str:
        """Return why a quota would refuse another pod like this one, "" if none would.

        `Pod` leaves limits out. So limit ranges, and quotas that bound limits, are asked only about
        pods that are made from a template.
        """
        obj = to_dict(pod)
        for key in self._quotas():
            if key[0] == pod.namespace:
                quota = self._quota(key)
                used = self._use_of(key, quota)
                hard = (quota.get("spec") or {}).get("hard") or {}
                known = {
                    name: most for name, most in hard.items() if not name.startswith("limits.")
                }
                quota["spec"]["hard"] = known
                why = quota_fault(quota, used, "pods", new=obj, old=None)
                if why:
                    return why
        return ""

    def count(self, shelf: str, obj: Mapping[str, Any], sign: int = 1) -> None:
        """Count an object that came, or that is gone."""
        namespace = obj["metadata"].get("namespace") or ""
        for key in self._quotas():
            if key[0] != namespace:
                continue
            quota = self._quota(key)
            used = self._use_of(key, quota)
            if matches_scopes(quota.get("spec") or {}, shelf, dict(obj)):
                for name, nano in usage(shelf, dict(obj)).items():
                    if name in used:
                        used[name] += sign * nano

    # --- making pods ----------------------------------------------------------------------------

    def make(self, body: dict[str, Any]) -> None:
        """Put a pod as its owner sends it, or keep it as refused."""
        try:
            stored = self._admission.stored(body)
            pod = checked_pod(from_dict(Pod, stored))
        except UsageError as error:
            name = body["metadata"].get("name") or body["metadata"]["generateName"]
            pod = from_dict(Pod, body)
            metadata = msgspec.structs.replace(pod.metadata, name=f"{name}{len(self.refused)}")
            pod = msgspec.structs.replace(pod, metadata=metadata)
            self.refused[pod.key] = Refused(pod, str(error), invalid=True)
        else:
            why = self.fault("pods", stored)
            if why:
                # Only what the pod alone shows can be looked at again.
                self.refused[pod.key] = Refused(pod, why, invalid=not self.pod_fault(pod))
            else:
                self.create(pod)

    def stored_claim(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a volume claim as it would be stored, and count it.

        Raises
        ------
        UsageError
            The claim would be refused.
        """
        claim = self._admission.stored(body)
        why = self.fault("persistentvolumeclaims", claim)
        if why:
            name = claim["metadata"]["name"]
            raise UsageError(f"PersistentVolumeClaim {name} would be refused: {why}")
        self.count("persistentvolumeclaims", claim)
        return claim

    def create(self, pod: Pod) -> None:
        """Put a pod that its owner makes, or keep it until its namespace takes it."""
        why = self.pod_fault(pod)
        if why:
            self.refused[pod.key] = Refused(pod, why)
        elif pod.key not in self._objects.pods:
            self.refused.pop(pod.key, None)
            self._rehearsal.add_pod(pod)

    def refused_of(self, owner_uid: str) -> list[Key]:
        """Return the refused pods of an owner, the oldest first."""
        return [
            key
            for key, each in self.refused.items()
            if (owner := each.pod.metadata.controller) is not None and owner.uid == owner_uid
        ]

    def retry(self, namespace: str) -> None:
        """Try the refused pods of a namespace again, a call later."""
        if namespace not in self._retries and any(key[0] == namespace for key in self.refused):
            self._retries.add(namespace)
            self._rehearsal.soon(lambda: self._retry(namespace))

    def _retry(self, namespace: str) -> None:
        self._retries.discard(namespace)
        for key, each in list(self.refused.items()):
            if key[0] == namespace and not each.invalid:
                self.create(self.refused.pop(key).pod)

    def forget_invalid(self, namespace: str) -> None:
        """Forget invalid pods, after the bounds of their namespace have changed."""
        for key, each in list(self.refused.items()):
            if key[0] == namespace and each.invalid:
                del self.refused[key]

    def refresh(self) -> None:
        """Count for quotas that are new or have changed, before anything else comes or goes."""
        for key in self._quotas():
            self._use_of(key, self._quota(key))

    # --- counting -------------------------------------------------------------------------------

    def _quotas(self) -> list[Key]:
        return sorted(self._objects.manifests.get(_QUOTAS, {}))

    def _quota(self, key: Key) -> dict[str, Any]:
        found: dict[str, Any] = decode_untyped(self._objects.manifests[_QUOTAS][key])
        return found

    def _use_of(self, key: Key, quota: dict[str, Any]) -> dict[str, int]:
        """Return the use of a quota; a quota that is new or has changed is counted."""
        hard = (quota.get("spec") or {}).get("hard") or {}
        known = self._used.get(key)
        if known is not None and set(known[0]) == set(hard):
            return known[1]
        status = quota.get("status") or {}
        if known is None and set(status.get("used") or ()) >= set(hard):
            used = {name: parse_quantity(status["used"][name]) for name in hard}
        else:
            used = self._counted(key[0], quota, hard)
        self._used[key] = hard, used
        return used

    def _counted(self, namespace: str, quota: dict[str, Any], hard: Any) -> dict[str, int]:
        """Add up the use of all known objects of a namespace."""
        total = dict.fromkeys(hard, 0)
        found = [("pods", to_dict(p)) for k, p in self._objects.pods.items() if k[0] == namespace]
        for kind, manifests in self._objects.manifests.items():
            shelf = _PLURALS.get(kind)
            texts = (text for key, text in manifests.items() if key[0] == namespace)
            found += [(shelf, decode_untyped(text)) for text in texts if shelf is not None]
        for shelf, obj in found:
            if matches_scopes(quota.get("spec") or {}, shelf, obj):
                for name, nano in usage(shelf, obj).items():
                    if name in total:
                        total[name] += nano
        return total

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        assert pod is not None, "a change is about something"
        if any(key[0] == pod.namespace for key in self._quotas()) and _counts_otherwise(old, new):
            for each, sign in ((old, -1), (new, 1)):
                if each is not None:
                    self.count("pods", to_dict(each), sign)
        if new is None:
            self.retry(pod.namespace)


def _counts_otherwise(old: Pod | None, new: Pod | None) -> bool:
    """Whether a quota may count another version of a pod in another way."""
    return (
        old is None
        or new is None
        or (old.spec, old.status.phase, old.status.qos_class)
        != (new.spec, new.status.phase, new.status.qos_class)
    )
