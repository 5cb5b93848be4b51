"""Tools that users and tests of moorage share: builders, a virtual cluster, plugin harnesses.

Belongs here: tools that check the behaviour of moorage or of a plugin. This package may use
everything below `service`; nothing below may use this package.

``from moorage_sandbox.testing import ...`` has everything that a test of a plugin needs. Each name
is imported when it is first used, because the virtual cluster brings a whole API server.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moorage.base.clock import ManualClock
    from moorage_sandbox.testing.builders import node, node_manifest, pod, pod_manifest
    from moorage_sandbox.testing.contract import ContractReport, Fault, PointTime, check_contract
    from moorage_sandbox.testing.plugins import StillCluster, with_plugins
    from moorage_sandbox.testing.virtual_cluster import NotReachedError, VirtualCluster
    from moorage_sandbox.testing.virtual_loop import run_virtual

_HOMES = {
    "ContractReport": "moorage_sandbox.testing.contract",
    "Fault": "moorage_sandbox.testing.contract",
    "ManualClock": "moorage.base.clock",
    "NotReachedError": "moorage_sandbox.testing.virtual_cluster",
    "PointTime": "moorage_sandbox.testing.contract",
    "StillCluster": "moorage_sandbox.testing.plugins",
    "VirtualCluster": "moorage_sandbox.testing.virtual_cluster",
    "check_contract": "moorage_sandbox.testing.contract",
    "node": "moorage_sandbox.testing.builders",
    "node_manifest": "moorage_sandbox.testing.builders",
    "pod": "moorage_sandbox.testing.builders",
    "pod_manifest": "moorage_sandbox.testing.builders",
    "run_virtual": "moorage_sandbox.testing.virtual_loop",
    "with_plugins": "moorage_sandbox.testing.plugins",
}

__all__ = [
    "ContractReport",
    "Fault",
    "ManualClock",
    "NotReachedError",
    "PointTime",
    "StillCluster",
    "VirtualCluster",
    "check_contract",
    "node",
    "node_manifest",
    "pod",
    "pod_manifest",
    "run_virtual",
    "with_plugins",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
