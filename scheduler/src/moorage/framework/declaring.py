"""One decorated function as a plugin: the smallest form there is.

A decorator only marks its function, which is otherwise unchanged and can be called in a test. The
registry makes a class of it (`plugin_class_of`).
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, TypeVar, overload

import msgspec

from moorage.framework.signatures import parameter_faults
from moorage.framework.status import Status
from moorage.snapshot.node_info import NodeInfo
from moorage.snapshot.pod_info import PodInfo

YesOrNo = bool | str | Status | None
"""True or None: success. False: a rejection. A text: a rejection with this reason. A `Status`:
itself.
"""

FilterFunction = Callable[[PodInfo, NodeInfo], YesOrNo]
ScoreFunction = Callable[[PodInfo, NodeInfo], float]
PodFunction = Callable[[PodInfo], YesOrNo]
PermitFunction = Callable[[PodInfo, str], YesOrNo | tuple[Status, float]]
BoundFunction = Callable[[PodInfo, str], Awaitable[None] | None]
PreBindFunction = Callable[[PodInfo, str], YesOrNo | Awaitable[YesOrNo]]

F = TypeVar("F", bound=Callable[..., Any])
_MARK: Final = "__moorage_plugin__"


class Declared(msgspec.Struct, frozen=True):
    """The mark of a decorator on its function: the extension point, and the plugin's name."""

    point: str
    name: str


class Form(msgspec.Struct, frozen=True):
    """The form of a method that is made of a function.

    Parameters
    ----------
    method
        The method it becomes.
    arguments
        Names of the arguments the function is called with.
    may_wait
        Whether it may be ``async def``.
    """

    method: str
    arguments: tuple[str, ...]
    may_wait: bool = False


FORMS: Final[dict[str, Form]] = {
    "filter": Form("filter_node", ("pod", "node")),
    "score": Form("score_node", ("pod", "node")),
    "pre_enqueue": Form("pre_enqueue", ("pod",)),
    "permit": Form("permit", ("pod", "node_name")),
    "pre_bind": Form("pre_bind", ("pod", "node_name"), may_wait=True),
    "post_bind": Form("post_bind", ("pod", "node_name"), may_wait=True),
}
"""Every decorator, by its name."""


class Decorator(Protocol[F]):
    """Used bare, or called with the plugin's name."""

    @overload
    def __call__(self, function: F) -> F: ...
    @overload
    def __call__(self, *, name: str) -> Callable[[F], F]: ...


def _decorator(point: str) -> Callable[..., Any]:
    def decorate(function: Any = None, *, name: str = "") -> Any:
        def mark(marked: Any) -> Any:
            given = name or plugin_name(marked.__name__)
            setattr(marked, _MARK, Declared(point, given))
            return marked

        return mark if function is None else mark(function)

    return decorate


filter: Decorator[FilterFunction] = _decorator("filter")  # noqa: A001 - the point's own name
"""May the pod go to the node? ``(pod, node) -> bool, text, Status or None``."""
score: Decorator[ScoreFunction] = _decorator("score")
"""The worth of a node for a pod: ``(pod, node) -> number``, 0 to 100."""
pre_enqueue: Decorator[PodFunction] = _decorator("pre_enqueue")
"""May the pod be scheduled at all, yet? ``(pod) -> bool, text, Status or None``."""
permit: Decorator[PermitFunction] = _decorator("permit")
"""May the pod be bound to the chosen node? ``(pod, node_name) -> yes, no, or (wait, seconds)``."""
pre_bind: Decorator[PreBindFunction] = _decorator("pre_bind")
"""Work that must be done before the pod is bound: ``(pod, node_name)``; may be ``async def``."""
post_bind: Decorator[BoundFunction] = _decorator("post_bind")
"""Told when the pod is bound: ``(pod, node_name) -> None``; may be ``async def``."""


def plugin_name(function_name: str) -> str:
    """Return the name of a plugin made of a function: ``prefer_green`` is PreferGreen."""
    return "".join(word[:1].upper() + word[1:] for word in function_name.split("_"))


def declared(value: object) -> Declared | None:
    """Return the mark of a decorator on a function, None without one."""
    found = getattr(value, _MARK, None)
    return found if isinstance(found, Declared) and not isinstance(value, type) else None


def function_faults(function: Callable[..., Any], mark: Declared) -> list[str]:
    """Return the faults of a decorated function, each as ``point: what``."""
    form = FORMS[mark.point]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    wanted = [inspect.Parameter(name, kind) for name in form.arguments]
    shown = f"it is called as {function.__name__}({', '.join(form.arguments)})"
    faults = [f"{mark.point}: {fault}: {shown}" for fault in parameter_faults(function, wanted)]
    if inspect.iscoroutinefunction(function) and not form.may_wait:
        waiting = ", ".join(name for name, other in FORMS.items() if other.may_wait)
        faults.append(f"{mark.point}: is async, but only {waiting} may wait")
    return faults


def plugin_class_of(function: Callable[..., Any], mark: Declared) -> type[Any]:
    """Return a plugin class whose one method calls a decorated function."""

    def on_node(self: object, state: object, pod: PodInfo, node: object) -> Any:
        del self, state
        return function(pod, node)

    def on_pod(self: object, pod: Any) -> Any:
        del self
        return function(PodInfo(pod))

    form = FORMS[mark.point]
    method = on_pod if form.arguments == ("pod",) else on_node
    doc = inspect.getdoc(function)
    return type(mark.name, (), {"name": mark.name, "__doc__": doc, form.method: method})
