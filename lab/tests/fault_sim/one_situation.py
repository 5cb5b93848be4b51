"""Scripts with one situation, in which nothing else happens."""

from __future__ import annotations

from moorage_lab.fault_sim.acts import Script
from moorage_lab.fault_sim.users.plot import Mix, Plot, SceneMaker


def one_situation(
    situation: SceneMaker, *, seed: int, setup: str, rest_seconds: float, looks: bool = False
) -> Script:
    """Return the script of one situation.

    Parameters
    ----------
    situation
        Sets the scene, and returns the event.
    seed
        Seed of the script.
    setup
        Configuration of the scheduler.
    rest_seconds
        Time after the last act.
    looks
        Whether the cluster is looked at after the event.
    """
    mix = Mix(
        nodes=1,
        steps=0,
        replicas=1,
        users=(),
        waits=1,
        wait_kinds=[situation],
        looks=looks,
        setup=setup,
        rest_seconds=rest_seconds,
    )
    return Plot(seed, mix).script()
