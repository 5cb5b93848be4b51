"""Whose name a word of a text may be: pods, nodes, claims and namespaces of the cluster."""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.service.core import Core

PODS: Final = "pods"
NODES: Final = "nodes"
CLAIMS: Final = "persistentvolumeclaims"
DEVICE_CLAIMS: Final = "resourceclaims"
_WORDS: Final = frozenset(
    """
    a active affinity already an and any are as at available be bind binding bound but by
    capacity claim claims cpu default-scheduler deleted does enough ephemeral-storage fit
    for free from had has in incoming insufficient is it its label labels limit match memory
    must no node nodes not of on one or other persistentvolumeclaim plugin pod pods
    preemption priority ready requested requests resource resources rules scheduling spread
    storage taint than that the there they this to too topology unbound unschedulable
    untolerated victims volume waits wants was will with would zone
    """.split()  # noqa: SIM905 - as a list it is ninety lines
)
"""Words of messages, which name nothing there even where a thing has such a name."""


class Candidates(msgspec.Struct, frozen=True):
    """The things that have one name.

    Parameters
    ----------
    name
        The name.
    objects
        (plural of the kind, namespace) of the pods and claims.
    node, namespace
        Whether a node or a namespace has the name.
    """

    name: str
    objects: tuple[tuple[str, str], ...] = ()
    node: bool = False
    namespace: bool = False


class WrittenNames:
    """Looks words up among the names of a scheduler's cluster; each word once, then it knows.

    Parameters
    ----------
    core
        The state; it is not changed.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        listers = core.snapshot.listers
        self._claims = (
            (CLAIMS, listers.persistent_volume_claims),
            (DEVICE_CLAIMS, listers.resource_claims),
        )
        self._namespaces = [each.metadata.name for each in listers.namespaces.all()]
        self._known: dict[str, Candidates] = {}

    def candidates_in(self, word: str) -> Candidates:
        """Return the things that have a word as their name."""
        known = self._known.get(word)
        if known is None:
            known = self._known[word] = self._candidates_for(word)
        return known

    def _candidates_for(self, word: str) -> Candidates:
        if word in _WORDS or word.isdecimal():
            return Candidates(word)
        core = self._core
        objects = [
            (PODS, each) for each in self._namespaces if core.store.info(each, word) is not None
        ]
        for kind, lister in self._claims:
            objects += [
                (kind, each) for each in self._namespaces if lister.get(word, each) is not None
            ]
        return Candidates(
            word,
            tuple(objects),
            node=core.snapshot.row_of(word) is not None,
            namespace=core.snapshot.listers.namespaces.get(word) is not None,
        )
