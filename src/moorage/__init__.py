"""A Kubernetes scheduler in Python.

`Sandbox` is a cluster of its own for a ``with`` block. `simulate` places recorded pods in
virtual time, and `Cluster` pods in a cluster in memory. The module `moorage.plugin` is for the
authors of plugins.
"""

from __future__ import annotations

from moorage.base.version import __version__

__all__ = ["Cluster", "Sandbox", "__version__", "simulate"]

# As in typing, whose import takes so long that Ctrl-C may come in it (`cli.entry`).
TYPE_CHECKING = False

if TYPE_CHECKING:
    from moorage.sandbox.in_python import Sandbox
    from moorage.traces.cluster import Cluster
    from moorage.traces.in_python import simulate


def __dir__() -> list[str]:
    return sorted([*globals(), "Cluster", "Sandbox", "simulate"])


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: importing the package costs next to nothing."""
    if name == "Sandbox":
        from moorage.sandbox.in_python import Sandbox

        return Sandbox
    if name == "Cluster":
        from moorage.traces.cluster import Cluster

        return Cluster
    if name == "simulate":
        from moorage.traces.in_python import simulate

        return simulate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
