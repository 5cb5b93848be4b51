"""The resource slices with the taints of DeviceTaintRules behind those of their drivers.

Both kinds are followed by their logs, so that a change costs no more than the slices it concerns.

Rules mirrored: kubernetes v1.37 ``staging/src/k8s.io/dynamic-resource-allocation/resourceslice``
(``tracker/tracker.go``).
"""

from __future__ import annotations

from collections.abc import Iterator

from moorage.api.devices import DeviceTaintRule, ResourceSlice
from moorage.api.taints import concerns_slice, with_rule_taints
from moorage.snapshot.listers import Listers


class TaintedSlices:
    """Follows slices and rules.

    Parameters
    ----------
    listers
        Where both are.
    """

    def __init__(self, listers: Listers) -> None:
        self._slices, self._rules = listers.resource_slices, listers.device_taint_rules
        self._known: dict[str, DeviceTaintRule] = {}
        self._positions = (0, 0)

    def every(self) -> Iterator[ResourceSlice]:
        """Return every slice as of now; `changes` continues from here."""
        self._positions = (self._slices.log.position, self._rules.log.position)
        self._known = {rule.name: rule for rule in self._rules.all()}
        return (self._tainted(slice_) for slice_ in self._slices.all())

    def changes(self) -> dict[str, ResourceSlice | None] | None:
        """Return the slices that changed since the last call, by name; None if all may have.

        The value of a slice that is gone is None.
        """
        slices_at, rules_at = self._positions
        if (slices_at, rules_at) == (self._slices.log.position, self._rules.log.position):
            return {}
        slices, rules = self._slices.log.since(slices_at), self._rules.log.since(rules_at)
        if slices is None or rules is None:
            return None
        names = {name: None for _, name in slices}
        names |= dict.fromkeys(self._retainted([name for _, name in rules]))
        self._positions = (self._slices.log.position, self._rules.log.position)
        found = {name: self._slices.get(name) for name in names}
        return {name: each and self._tainted(each) for name, each in found.items()}

    def _retainted(self, changed: list[str]) -> list[str]:
        """Return the slices that changed rules concern, before or after the change."""
        versions = []
        for name in dict.fromkeys(changed):
            old, new = self._known.pop(name, None), self._rules.get(name)
            versions += [rule for rule in (old, new) if rule is not None]
            if new is not None:
                self._known[name] = new
        return [
            slice_.name
            for slice_ in (self._slices.all() if versions else ())
            if any(concerns_slice(rule, slice_) for rule in versions)
        ]

    def _tainted(self, slice_: ResourceSlice) -> ResourceSlice:
        return with_rule_taints(slice_, self._known.values())
