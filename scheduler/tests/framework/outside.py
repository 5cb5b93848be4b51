"""Plugins from outside for tests of what becomes of them: one of any methods, in a profile."""

from __future__ import annotations

from functools import partial
from typing import Any

from moorage.config.merge import ProfileSpec
from moorage.framework.capabilities import TRAITS, Capabilities
from moorage.framework.containment import BudgetExceededError, Containment
from moorage.framework.loading import entry_of
from moorage.framework.profile import Profile
from moorage.framework.registry import POINT_METHODS, Registry
from moorage.framework.roles import Role
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import node, pod
from scheduler.tests.framework.builders import handle

NODES = ("a", "b", "c")
POD = PodInfo(pod("p"))
BOOM = RuntimeError("boom")


def snapshot(*names: str) -> Snapshot:
    made = Snapshot()
    for name in names:
        made.table.add_node(node(name))
    return made


def plugin_class(**methods: Any) -> type[Any]:
    """A class named Mine whose methods answer with a value, raise it, or call it.

    Arguments named as capabilities are declared as such.
    """

    def method(value: Any) -> Any:
        def answer(self: object, *args: Any, **kwargs: Any) -> Any:
            if isinstance(value, BaseException):
                raise value
            return value(*args) if callable(value) else value

        return answer

    declared = {name: methods.pop(name) for name in TRAITS if name in methods}
    for name, value in declared.items():
        if TRAITS[name].arguments:
            declared[name] = partial(method(value), None)
    roles = methods.pop("roles", Role.NONE)
    attributes = {"name": "Mine", "capabilities": Capabilities(**declared), "roles": roles}
    return type("Mine", (), attributes | {k: method(v) for k, v in methods.items()})


def profile(given: Snapshot | None = None, **methods: Any) -> tuple[Profile, Containment]:
    """A profile of one plugin from outside, at every point it extends."""
    containment = Containment()
    registry = Registry([entry_of(plugin_class(**methods), origin="here")], containment=containment)
    points = {
        point: ("Mine",) if registry.extends("Mine", point) else () for point in POINT_METHODS
    }
    spec = ProfileSpec("mine", points, {"Mine": 1}, {})
    return Profile(spec, registry, handle(given or snapshot())), containment


class EndsAt:
    """A budget that is spent in the call of this number."""

    def __init__(self, number: int) -> None:
        self.left = number

    def run(self, label: str, call: Any, args: Any, kwargs: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise BudgetExceededError(f"{label} took too long")
        return call(*args, **kwargs)
