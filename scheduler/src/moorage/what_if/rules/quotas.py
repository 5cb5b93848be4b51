"""The use of ResourceQuotas in a model, and whether a quota allows another object.

The rules are those of the embedded API server. The use begins with the status of a quota, because
a scheduler does not know every object that counts; from there on it follows the objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from moorage.api.codec import decode_untyped, to_dict
from moorage.api.quantity import parse_quantity
from moorage.api.resources import RESOURCES
from moorage.kinds.quotas.quota_rules import quota_fault
from moorage.kinds.quotas.usage import matches_scopes, usage
from moorage.virtual.objects import ClusterObjects, Key

_QUOTAS: Final = ("", "ResourceQuota")
_PLURALS: Final = {(each.group, each.kind): each.qualified for each in RESOURCES}


class Quotas:
    """The resource quotas of a cluster in memory.

    Parameters
    ----------
    objects
        The objects of the cluster.
    """

    def __init__(self, objects: ClusterObjects) -> None:
        self._objects = objects
        # Quota -> its hard bounds when it was counted, and the use of each, nano units.
        self._used: dict[Key, tuple[dict[str, Any], dict[str, int]]] = {}
        self.refresh()

    def bounds(self, namespace: str) -> bool:
        """Whether a namespace has a quota."""
        return any(key[0] == namespace for key in self._objects.manifests.get(_QUOTAS, {}))

    def fault(self, shelf: str, obj: dict[str, Any]) -> str:
        """Return why the quotas of its namespace would refuse a new object, "" if none would.

        Parameters
        ----------
        shelf
            Resource with its group, ``deployments.apps``.
        """
        for key in self._keys(obj):
            quota = self._quota(key)
            why = quota_fault(quota, self._use_of(key, quota), shelf, new=obj, old=None)
            if why:
                return why
        return ""

    def count(self, shelf: str, obj: dict[str, Any], sign: int = 1) -> None:
        """Count an object that came, or that is gone."""
        for key in self._keys(obj):
            quota = self._quota(key)
            used = self._use_of(key, quota)
            if matches_scopes(quota.get("spec") or {}, shelf, obj):
                for name, nano in usage(shelf, obj).items():
                    if name in used:
                        used[name] += sign * nano

    def refresh(self) -> None:
        """Count for quotas that are new or have changed, before anything else comes or goes."""
        for key in self._objects.manifests.get(_QUOTAS, {}):
            self._use_of(key, self._quota(key))

    # --- leaves ---------------------------------------------------------------------------------

    def _keys(self, obj: Mapping[str, Any]) -> list[Key]:
        namespace = obj["metadata"].get("namespace") or ""
        found = self._objects.manifests.get(_QUOTAS, {})
        return sorted(key for key in found if key[0] == namespace)

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
        used = _amounts(status.get("used") or {}, hard) if known is None else None
        if used is None:
            used = self._usage_of(key[0], quota, hard)
        self._used[key] = hard, used
        return used

    def _usage_of(self, namespace: str, quota: dict[str, Any], hard: Any) -> dict[str, int]:
        """Add up the use of all known objects of a namespace."""
        total = dict.fromkeys(hard, 0)
        objects = [("pods", to_dict(p)) for k, p in self._objects.pods.items() if k[0] == namespace]
        for kind, manifests in self._objects.manifests.items():
            shelf = _PLURALS.get(kind)
            texts = (text for key, text in manifests.items() if key[0] == namespace)
            objects += [(shelf, decode_untyped(text)) for text in texts if shelf is not None]
        for shelf, obj in objects:
            if matches_scopes(quota.get("spec") or {}, shelf, obj):
                for name, nano in usage(shelf, obj).items():
                    if name in total:
                        total[name] += nano
        return total


def _amounts(used: Mapping[str, str], hard: Iterable[str]) -> dict[str, int] | None:
    """Return the use that a status tells, nano units; None if it does not tell all of it."""
    try:
        return {name: parse_quantity(used[name]) for name in hard}
    except (KeyError, TypeError, ValueError):
        return None
