"""Topology of coscheduling's groups: two annotations of a PodGroup, or of pods without an object.

Both annotations name a node label. ``moorage.dev/required-topology`` keeps the group from being
placed in more than one domain, ``moorage.dev/preferred-topology`` packs it where it fits. The
annotations are moorage's own; a PodGroup of Kubernetes has a field for the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from moorage.api.coscheduling import PREFERRED_TOPOLOGY, REQUIRED_TOPOLOGY
from moorage.api.names import qualified_name_faults


class Topology(NamedTuple):
    """The node labels that annotations ask for; None for an annotation that is absent."""

    required: str | None = None
    preferred: str | None = None

    def fault(self, owner: str) -> str:
        """Return why an annotation is no label key; "" without a fault.

        Parameters
        ----------
        owner
            The object with the annotations, for the message.
        """
        if self.required is None and self.preferred is None:
            return ""
        for name, key in zip(_NAMES, self, strict=True):
            why = "" if key is None else _label_key_fault(key)
            if why:
                return f'annotation {name} of {owner} is "{key}", not a label key: {why}'
        return ""

    def difference(self, other: Topology) -> tuple[str, str, str] | None:
        """Return the first annotation that differs, and both values; None for equal topologies."""
        for name, mine, theirs in zip(_NAMES, self, other, strict=True):
            if mine != theirs:
                return name, _value(mine), _value(theirs)
        return None


NO_TOPOLOGY = Topology()
_NAMES = (REQUIRED_TOPOLOGY, PREFERRED_TOPOLOGY)


def topology_of(annotations: Mapping[str, str]) -> Topology:
    """Return the topology that annotations ask for."""
    return Topology(annotations.get(REQUIRED_TOPOLOGY), annotations.get(PREFERRED_TOPOLOGY))


def _value(key: str | None) -> str:
    return "none" if key is None else f'"{key}"'


@lru_cache(maxsize=256)
def _label_key_fault(key: str) -> str:
    return "; ".join(qualified_name_faults(key))
