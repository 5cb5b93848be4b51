"""Profiles of fake plugins: objects whose methods are given, in the order given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.config.merge import ProfileSpec
from moorage.framework.capabilities import TRAITS, Capabilities
from moorage.framework.handle import Handle
from moorage.framework.profile import Profile
from moorage.framework.registry import POINT_METHODS, PluginEntry, Registry
from moorage.framework.status import ReasonTable
from moorage.snapshot.snapshot import Snapshot


class Fake:
    """A plugin that has the attributes it is given; a callable is a method without self.

    Arguments named as capabilities are declared as such.
    """

    def __init__(self, name: str, **attributes: Any) -> None:
        self.name = name
        declared = {key: attributes.pop(key) for key in TRAITS if key in attributes}
        self.capabilities = Capabilities(**declared)
        for key, value in attributes.items():
            setattr(self, key, value)


class ReadyEntry(PluginEntry, frozen=True, kw_only=True):
    """A registry entry for a plugin that exists already."""

    instance: Any

    def make(self, args: object, handle: Handle) -> object:
        return self.instance


def handle(snapshot: Snapshot | None = None) -> Handle:
    given = Snapshot() if snapshot is None else snapshot
    return Handle(
        profile_name="default-scheduler",
        snapshot=given,
        reasons=ReasonTable(),
        clock=ManualClock(),
        streams=Streams(1),
    )


def profile(
    *plugins: Any, snapshot: Snapshot | None = None, weights: Mapping[str, int] | None = None
) -> Profile:
    """Enable every plugin at every point it has a method for; weights are 1 unless given."""
    points = {
        point: tuple(p.name for p in plugins if any(hasattr(p, method) for method in methods))
        for point, methods in POINT_METHODS.items()
    }
    spec = ProfileSpec(
        "default-scheduler", points, dict.fromkeys(points["score"], 1) | dict(weights or {}), {}
    )
    entries = [ReadyEntry(p.name, type(p), instance=p) for p in plugins]
    return Profile(spec, Registry(entries), handle(snapshot))


def answers(value: Any) -> Callable[..., Any]:
    """Return a method that answers with a value, or raises it when it is an exception."""

    def method(*args: Any, **kwargs: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return method
