"""A Kubernetes scheduler in Python.

`Sandbox` is a cluster of its own for a ``with`` block; the module `moorage.plugin` is for the
authors of plugins.
"""

from __future__ import annotations

from moorage.base.version import __version__

__all__ = ["Sandbox", "__version__"]

# As in typing, whose import takes so long that Ctrl-C may come in it (`cli.entry`).
TYPE_CHECKING = False

if TYPE_CHECKING:
    from moorage.sandbox.in_python import Sandbox


def __dir__() -> list[str]:
    return sorted([*globals(), "Sandbox"])


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: importing the package costs next to nothing."""
    if name != "Sandbox":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from moorage.sandbox.in_python import Sandbox

    return Sandbox
