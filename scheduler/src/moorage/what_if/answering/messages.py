"""The frames between a scheduler and the process that answers questions next to it."""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.virtual.objects import Key

START: Final = "/start"
"""The path of the question about a start; it comes with an explanation, not by a path of HTTP."""
LIMIT_REACHED: Final = 503
"""The code of a reply without an answer, because a limit of time or memory was reached."""


class First(msgspec.Struct, frozen=True):
    """The first frame: the scheduler's configuration, its plugins from outside, and the time.

    Parameters
    ----------
    config
        Pickled `LoadedConfiguration`, before plugins are enabled.
    plugins
        Values of ``--plugin``.
    now_ns
        Wall-clock time, nanoseconds since the Unix epoch.
    """

    config: bytes
    plugins: tuple[str, ...]
    now_ns: int


class Update(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Objects that are new or have changed, and the keys of objects that are gone.

    Parameters
    ----------
    pods, nodes
        New or changed; the node of an assumed pod is filled in.
    succeeded
        Members of pod groups that have succeeded.
    others
        Other objects by the name of their lister, each as MessagePack of its type.
    gone_pods, gone_nodes, gone_succeeded, gone_others
        The objects that are gone; of members that had succeeded the uids.
    """

    pods: list[Pod] = []
    nodes: list[Node] = []
    succeeded: list[Pod] = []
    others: dict[str, list[msgspec.Raw]] = {}
    gone_pods: list[Key] = []
    gone_nodes: list[str] = []
    gone_succeeded: list[str] = []
    gone_others: dict[str, list[Key]] = {}


class Moment(msgspec.Struct, frozen=True):
    """The parts of a scheduler's state that no object shows.

    Parameters
    ----------
    now_ns
        Wall-clock time, nanoseconds since the Unix epoch.
    draws
        Pickled random streams.
    order
        Uids of the pods in the queue, the longest waiting first.
    """

    now_ns: int
    draws: bytes
    order: list[str]


class QuestionFrame(msgspec.Struct, frozen=True, kw_only=True):
    """The frame of a question.

    Parameters
    ----------
    path
        `WHAT_IF`, `CAPACITY` or `START`.
    only_names
        Whether only the objects that the body names are asked for, as JSON of `Readable`s.
    body
        The JSON that the caller sent; MessagePack for `START`.
    moment
        The scheduler's state besides its objects.
    time, scheduling
        Fields of the answer.
    seconds_most
        After so long the question is given up.
    with_local_data
        The pods with a volume of kind emptyDir on the nodes that the body drains.
    """

    path: str
    body: bytes
    moment: Moment
    time: str
    scheduling: bool
    seconds_most: int
    only_names: bool = False
    with_local_data: tuple[Key, ...] = ()


class Reply(msgspec.Struct, frozen=True):
    """The frame of an answer: an HTTP status code, and JSON, or else the text of the problem."""

    code: int
    body: bytes
