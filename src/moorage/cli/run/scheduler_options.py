"""Options of the scheduler itself, apart from those of its process.

``moorage up`` starts the scheduler as a process of its own and has no use for its plugins.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec


class SchedulerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options given to ``moorage run``.

    Parameters
    ----------
    kubeconfig, context
        How to reach the server; "" for the configuration's, then the usual places.
    config
        File of the configuration; None for the defaults.
    seed
        Of all random choices; None draws one.
    plugins
        Plugins from outside, as ``--plugin`` names them.
    flags
        kube-scheduler's own that were given, by name.
    verbosity
        How much is logged, as ``-v`` of kube-scheduler.
    """

    kubeconfig: str = ""
    context: str = ""
    config: Path | None = None
    seed: int | None = None
    plugins: tuple[str, ...] = ()
    flags: Mapping[str, Any] = {}
    verbosity: int = 0
