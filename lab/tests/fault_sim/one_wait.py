"""Scripts in which one pod waits for one thing, and nothing else happens."""

from __future__ import annotations

from moorage_lab.fault_sim.acts import Script
from moorage_lab.fault_sim.users.plot import Mix, Plot
from moorage_lab.fault_sim.users.waits import SatisfiedWait


def one_wait(
    wait: SatisfiedWait, *, seed: int, setup: str, rest_seconds: float, looks: bool = False
) -> Script:
    """Return the script of one thing that a pod waits for.

    Parameters
    ----------
    wait
        The thing.
    seed
        Seed of the script.
    setup
        Configuration of the scheduler.
    rest_seconds
        Time after the last act.
    looks
        Whether the cluster is looked at after the thing has come.
    """
    mix = Mix(
        nodes=1,
        steps=0,
        replicas=1,
        users=(),
        waits=1,
        wait_kinds=[wait],
        looks=looks,
        setup=setup,
        rest_seconds=rest_seconds,
    )
    return Plot(seed, mix).script()
