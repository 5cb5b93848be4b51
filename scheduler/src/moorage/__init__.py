"""A Kubernetes scheduler in Python.

`Sandbox` is a cluster of its own for a ``with`` block. `simulate` places recorded pods in
virtual time, and `Cluster` pods in a cluster in memory. The module `moorage.plugin` is for the
authors of plugins.

The three names come from the packages that this one does not need. ``__init__.pyi`` has their
types.
"""

from __future__ import annotations

from moorage.base.version import __version__

__all__ = ["Cluster", "Sandbox", "__version__", "simulate"]

_BROUGHT_BY = {"Cluster": "moorage-lab", "Sandbox": "moorage-sandbox", "simulate": "moorage-lab"}


def __dir__() -> list[str]:
    return sorted([*globals(), *_BROUGHT_BY])


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: importing the package costs next to nothing."""
    if name not in _BROUGHT_BY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from moorage.base.entry_points import entry_points, load

    target = entry_points("moorage.exports").get(name)
    if target is None:
        # No AttributeError: `from moorage import Sandbox` would replace its message.
        package = _BROUGHT_BY[name]
        raise ImportError(
            f"moorage.{name} comes with {package}, which is not installed: pip install {package}"
        )
    return load(target)
