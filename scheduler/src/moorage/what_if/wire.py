"""The questions what-if and capacity as they go over the wire, and their answers.

`moorage.cli` reads the answers with the same types, wherever they were computed.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec

from moorage.api.mentions import Prose
from moorage.service.questions.folding.folds import Fold
from moorage.service.questions.question import Answer
from moorage.what_if.capacity.room import Need, Room
from moorage.what_if.change import Change
from moorage.what_if.consequences import ChangeComparison

WHAT_IF: Final = "/what-if"
CAPACITY: Final = "/capacity"
"""The paths of the questions."""
LIMIT_REASON: Final = "LimitReached"
"""The reason that comes with code 503: to ask again does not help."""
Manifest: TypeAlias = dict[str, Any]

_OTHER_OWNERS: Final = "owners in other namespaces"

PODS_MOST: Final = 100_000
"""No question about capacity counts further."""


class WhatIfBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Changes to try.

    Parameters
    ----------
    changes
        The changes, in the order in which they happen.
    objects
        Manifests of Deployments and other owners of pods, which the scheduler does not have in
        full: those that changes are about, and those whose pods are to come back as their
        controllers make them.
    """

    changes: tuple[Change, ...]
    objects: tuple[Manifest, ...] = ()


class WhatIfAnswer(Answer, frozen=True, kw_only=True, rename="camel"):
    """The consequences of changes.

    Parameters
    ----------
    course
        Which pods start, move, are lost or wait, and how full nodes and zones are.
    worse
        A sentence for each deterioration; empty without one.
    """

    kind: str = "WhatIf"
    course: ChangeComparison
    worse: tuple[str, ...]

    def after_redaction(self, whole: WhatIfAnswer) -> WhatIfAnswer:
        """Return the answer with sentences that name no owner of pods that were left out.

        Parameters
        ----------
        whole
            The answer with all pods.
        """
        seen = {each.pod for each in self.course.lost}
        lost = tuple(
            each
            if each.pod in seen or not each.unknown_owner
            else msgspec.structs.replace(each, unknown_owner=_OTHER_OWNERS)
            for each in whole.course.lost
        )
        worse = msgspec.structs.replace(whole.course, lost=lost).worse
        return msgspec.structs.replace(self, worse=worse)


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A node that could be added.

    Parameters
    ----------
    like
        Its name in the answer.
    manifest
        The node as plain JSON values: labels, taints, and `status.allocatable`.
    """

    like: str
    manifest: Manifest


class CapacityBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Pods whose number is asked for, and shapes of nodes to try for the pods that wait.

    Parameters
    ----------
    like
        ``KIND/NAME`` of an owner or a pod: pods like its pods are counted. Empty for `mix`.
    mix
        Pods and owners of pods as manifests. With `whole`, all of them together count as one, an
        owner with all its pods; otherwise one pod of the one manifest is counted.
    whole
        Whether the manifests count as a whole.
    namespace
        The namespace of names and manifests that say none.
    most
        Count no further than so many pods.
    needs
        Whether to say which nodes would place the pods that wait.
    shapes
        Shapes to try, in addition to those of the cluster's nodes; only with `needs`.
    objects
        As in the question what-if.
    """

    like: str = ""
    mix: tuple[Manifest, ...] = ()
    whole: bool = False
    namespace: str = "default"
    most: Annotated[int, msgspec.Meta(ge=1)] = 10_000
    needs: bool = False
    shapes: tuple[Shape, ...] = ()
    objects: tuple[Manifest, ...] = ()


class Capacity(msgspec.Struct, frozen=True, rename="camel"):
    """The answer about capacity.

    Parameters
    ----------
    room
        How many more pods fit; null if that was not asked.
    needs
        The nodes that would place the pods that wait, by shape; empty if no pod waits, or if that
        was not asked.
    left_out
        The first node of each shape that was not tried, the smallest first.
    limit
        The limit because of which shapes were left out; "" where none was.
    waiting
        The pods that wait, those of equal owner, group and reason as one row; empty if that was not
        asked.
    """

    room: Room | None = None
    needs: tuple[Need, ...] = ()
    left_out: tuple[Prose, ...] = ()
    limit: str = ""
    waiting: tuple[Fold, ...] = ()


class CapacityAnswer(Answer, frozen=True, kw_only=True, rename="camel"):
    """The number of pods that still fit, and the nodes that would place the pods that wait.

    Parameters
    ----------
    capacity
        The answer.
    """

    kind: str = "Capacity"
    capacity: Capacity
