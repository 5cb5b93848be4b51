"""Makes the question about capacity from options, and has it answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from moorage.api.resources import by_name
from moorage.base.clock import NS_PER_SECOND, Clock, SystemClock
from moorage.base.errors import UsageError
from moorage.cli.manifests import read_manifests
from moorage.cli.render import show_note
from moorage.cli.what_if.source import Source, ask_scheduler, load
from moorage.nodeshapes.shapes import parse_shape, shaped_nodes
from moorage.virtual.model import ClusterModel
from moorage.what_if.answering.answers import capacity
from moorage.what_if.limits import Limits
from moorage.what_if.wire import CAPACITY, Capacity, CapacityAnswer, CapacityBody, Shape

# A quick answer needs no note; a slow one has a note in so many seconds.
_NOTE_NS: Final = 2 * NS_PER_SECOND


def body_of(
    like: str, file: str, *, whole: bool, shapes: Sequence[str], namespace: str
) -> CapacityBody:
    """Return the question.

    Parameters
    ----------
    like, file
        The owner, or the file of pods and owners; both empty to ask about the pods that wait.
    whole
        Whether the objects of the file count as a whole.
    shapes
        Shapes of nodes, as ``--shape`` has them.

    Raises
    ------
    UsageError
        A file or a shape cannot be read.
    """
    if like:
        word, _, name = like.partition("/")
        if by_name(word) is None or not name:
            raise UsageError(f"--like {like}: write KIND/NAME, such as deployment/web")
    return CapacityBody(
        like=like,
        mix=tuple(read_manifests([file])) if file else (),
        whole=whole,
        namespace=namespace,
        needs=bool(shapes) or not (like or file),
        shapes=tuple(_shape(text) for text in shapes),
    )


def title_of(like: str, pod_file: str, mix: str) -> str:
    """Return what is counted, in words; empty for nothing."""
    if like:
        return f"pods like {'' if _is_pod(like) else 'those of '}{like}"
    file = "standard input" if (mix or pod_file) == "-" else mix or pod_file
    return f"mixes of {file}" if mix else f"pods like {file}" * bool(file)


def answer_capacity(source: Source, body: CapacityBody) -> tuple[Capacity, str]:
    """Return the answer, and where it comes from, in words.

    Raises
    ------
    MoorageError
        The pods cannot be counted, or there is nobody to ask and nothing to compute from.
    """
    answered = ask_scheduler(
        source,
        CAPACITY,
        lambda manifests: msgspec.structs.replace(body, objects=manifests),
        answer=CapacityAnswer,
        owners=_owners(body),
    )
    if answered is not None:
        answer, source_text = answered
        return answer.capacity, source_text
    inputs, source_text = load(source)
    clock = SystemClock()
    progress = _Progress(clock)
    computed = capacity(
        body, lambda work: work(ClusterModel(inputs)), Limits(clock), progress=progress
    )
    return computed, source_text


class _Progress:
    """Notes how far an answer is, where it takes long."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._noted_ns = clock.monotonic_ns()

    def __call__(self, done: int, of: int, name: str) -> None:
        """Take the number of shapes that were tried, of all shapes, and the next one's name."""
        now_ns = self._clock.monotonic_ns()
        if now_ns - self._noted_ns >= _NOTE_NS:
            self._noted_ns = now_ns
            show_note(f"{done} of {of} shapes of nodes tried; next: nodes like {name}")


def _owners(body: CapacityBody) -> Iterator[str]:
    resource = by_name(body.like.partition("/")[0]) if body.like else None
    if resource is not None:
        yield resource.kind


def _is_pod(like: str) -> bool:
    resource = by_name(like.partition("/")[0])
    return resource is not None and resource.kind == "Pod"


def _shape(text: str) -> Shape:
    template: Any = shaped_nodes([parse_shape(text)], 1)[0]
    return Shape(text, template)
