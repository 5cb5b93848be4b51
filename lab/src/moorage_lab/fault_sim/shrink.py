"""A script that breaks something, made shorter: acts are left out as long as it still breaks it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from moorage_lab.fault_sim.acts import Script

Breaks = Callable[[Script], bool]
OnTry = Callable[[int, int], None]
"""Gets the number of tries so far, and the number of acts that are left."""


def shrunk(
    script: Script,
    breaks: Breaks,
    *,
    tries_max: int = 200,
    on_try: OnTry = lambda tries, left: None,
) -> Script:
    """Return a shorter script that still breaks the same thing.

    Parameters
    ----------
    script
        Breaks something.
    breaks
        Plays a script and tells whether it breaks the same thing.
    tries_max
        Number of scripts that are played at most.
    on_try
        Told of each.

    Notes
    -----
    Delta debugging (Zeller and Hildebrandt, 2002): runs of acts of half the length, a quarter and
    so on are left out, then nodes, then schedulers.
    """
    tries = 0

    def still(candidate: Script) -> bool:
        nonlocal tries
        tries += 1
        on_try(tries, len(candidate.acts))
        return tries <= tries_max and breaks(candidate)

    size = max(1, len(script.acts) // 2)
    while size and tries < tries_max:
        start, shorter = 0, False
        while start < len(script.acts):
            left = script.acts[:start] + script.acts[start + size :]
            candidate = msgspec.structs.replace(script, acts=left)
            if still(candidate):
                script, shorter = candidate, True
            else:
                start += size
        size = size // 2 if size > 1 or not shorter else 1
    for number in reversed(range(len(script.nodes))):
        left_nodes = script.nodes[:number] + script.nodes[number + 1 :]
        candidate = msgspec.structs.replace(script, nodes=left_nodes)
        if left_nodes and still(candidate):
            script = candidate
    while script.replicas > 1:
        candidate = msgspec.structs.replace(script, replicas=script.replicas - 1)
        if not still(candidate):
            break
        script = candidate
    return script
