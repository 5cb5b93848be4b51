"""A world as data: nodes, what happens at which moment, and what the rules have to know."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage_lab.fault_sim.acts import Create, Delete, Join, Patch

WAVE_LABEL = "moorage.dev/wave"
"""Label of the pods that come in a wave; its value is the number of the wave."""

AnyWorldAct = Create | Delete | Patch | Join


class Wave(msgspec.Struct, frozen=True, kw_only=True):
    """Pods of higher priority that come at one moment.

    Parameters
    ----------
    number
        Value of `WAVE_LABEL` on its pods.
    at
        The moment, seconds since the start.
    """

    number: int
    at: float


class GroupSize(msgspec.Struct, frozen=True, kw_only=True):
    """A pod group of a world.

    Parameters
    ----------
    name
        Value of the label ``app`` on its pods.
    least
        Pods that the group needs.
    """

    name: str
    least: int


class CompanyWorld(msgspec.Struct, frozen=True, kw_only=True):
    """A small cluster and what happens in it.

    Parameters
    ----------
    seed
        Decides what the acts leave open: delays, names, ties.
    features
        Names of what the world has, sorted.
    setup
        Configuration of the scheduler, a key of `moorage_lab.fault_sim.company.setups.SETUPS`.
    nodes
        Nodes at the start.
    acts
        What users do, in the order of time.
    waves, groups
        The preemptors by moment, and the pod groups.
    autoscaled_most
        Nodes that an autoscaler may add; 0 for no autoscaler.
    grace_seconds_most
        Longest grace period of a pod.
    end_seconds
        Moment after which nothing happens but what acts have caused.
    """

    seed: int
    features: tuple[str, ...]
    setup: str
    nodes: list[dict[str, Any]]
    acts: list[AnyWorldAct]
    waves: tuple[Wave, ...] = ()
    groups: tuple[GroupSize, ...] = ()
    autoscaled_most: int = 0
    grace_seconds_most: int = 0
    end_seconds: float = 0.0
