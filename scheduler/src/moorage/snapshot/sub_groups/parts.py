"""The sub-groups of a group as a tree: each with a minimum and a topology of its own.

A leaf counts pods, any other part counts the parts below it. A group is complete when its root is:
the members of a part that lacks pods hold up all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from moorage.api.pod import Pod

_LISTED_MOST: Final = 3  # parts in a message; a guess


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A group within a group.

    Parameters
    ----------
    name
        Its name, unique among the leaves of the group.
    minimum
        How many pods, or how many of the parts below, it needs.
    topology_key
        Node label that must have one value for all its pods; "" for anywhere.
    of_parts
        Whether it consists of parts instead of pods.
    parts
        The parts below it.
    """

    name: str
    minimum: int
    topology_key: str = ""
    of_parts: bool = False
    parts: tuple[Part, ...] = ()

    def leaves(self) -> Iterator[Part]:
        """Yield the parts that consist of pods, in order."""
        if not self.of_parts:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def missing(self, counts: Mapping[str, int]) -> int:
        """Return how many further pods it needs at least, 0 for none.

        Parameters
        ----------
        counts
            The number of pods that each leaf has.
        """
        if not self.of_parts:
            return max(0, self.minimum - counts.get(self.name, 0))
        least = sorted(part.missing(counts) for part in self.parts)[: self.minimum]
        return sum(least) + max(0, self.minimum - len(self.parts))

    def without(self, counts: Mapping[str, int]) -> Part:
        """Return the part with smaller minima: so many pods of each leaf are left out of them."""
        if not self.of_parts:
            least = max(0, self.minimum - counts.get(self.name, 0))
            return msgspec.structs.replace(self, minimum=least)
        return msgspec.structs.replace(
            self, parts=tuple(part.without(counts) for part in self.parts)
        )

    def topology_keys(self) -> Iterator[str]:
        """Yield the node labels that must have one value for it or for a part below it."""
        if self.topology_key:
            yield self.topology_key
        for part in self.parts:
            yield from part.topology_keys()

    @property
    def confined(self) -> bool:
        """Whether it or a part below it is kept in one topology domain."""
        return any(True for _ in self.topology_keys())


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """The sub-groups of a group, and how a pod names its own.

    Parameters
    ----------
    root
        The group itself.
    label
        The pod label whose value names the sub-group; "" where that is the PodGroup of the pod.
    text
        The annotation that says so; "" for a composite group.
    """

    root: Part
    label: str = ""
    text: str = ""

    def part_of(self, pod: Pod) -> str:
        """Return the name of the leaf that a pod belongs to; it need not exist."""
        if not self.label:
            named = pod.spec.scheduling_group
            return "" if named is None else named.pod_group_name
        return pod.metadata.labels.get(self.label, "")

    def counts(self, pods: Iterable[Pod]) -> Counter[str]:
        """Count pods by leaf."""
        return Counter(self.part_of(pod) for pod in pods)

    def missing(self, pods: Iterable[Pod]) -> int:
        """Return how many pods are missing next to these, 0 for none."""
        return self.root.missing(self.counts(pods))

    def lack(self, pods: Iterable[Pod]) -> str:
        """Return which sub-groups have too few of some pods, for messages; "" for none."""
        counts = self.counts(pods)
        if not self.root.missing(counts):
            return ""
        short = [
            f"sub-group {leaf.name} has {counts[leaf.name]} of {leaf.minimum}"
            for leaf in self.root.leaves()
            if counts[leaf.name] < leaf.minimum
        ]
        more = len(short) - _LISTED_MOST
        return ", ".join(
            [*short[:_LISTED_MOST], *([f"and {more} more lack pods"] if more > 0 else [])]
        )

    @property
    def composite(self) -> bool:
        """Whether they are the groups of a composite group; they are placed as by Kubernetes."""
        return not self.label

    @property
    def confined(self) -> bool:
        """Whether a sub-group is kept in one topology domain."""
        return self.root.confined
