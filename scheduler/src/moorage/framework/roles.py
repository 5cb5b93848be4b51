"""Roles: what a plugin does in its profile, where others must know it to decide rightly.

A plugin declares its roles in one place, its attribute ``roles``. A role is no promise of speed:
without it the scheduler decides differently. `moorage.framework.capabilities` has the promises.
"""

from __future__ import annotations

from enum import Flag, auto
from typing import Final

import msgspec

from moorage.base.errors import ConfigError


class Role(Flag):
    """A part that a plugin plays in its profile; several are joined by ``|``."""

    NONE = 0
    PREEMPTS = auto()
    EVICTS_WHOLE_GANGS = auto()
    SORTS_BY_FIRST_ATTEMPT = auto()
    FILTERS_CANDIDATES = auto()


class RoleRules(msgspec.Struct, frozen=True):
    """The rules and the documentation of one role.

    Parameters
    ----------
    meaning
        What the scheduler does because of the role.
    method
        The method that the plugin must have; "" for none.
    from_outside
        Whether a plugin from outside may declare it.
    """

    meaning: str
    method: str = ""
    from_outside: bool = True


ROLES: Final = {
    Role.PREEMPTS: RoleRules(
        "PostFilter proposes pods to evict. Its calls count as preemption attempts, and a pod that "
        "loses its place before it is bound loses it in this plugin's name.",
        method="post_filter",
    ),
    Role.EVICTS_WHOLE_GANGS: RoleRules(
        "In the profile of this plugin, a victim of preemption that belongs to a gang takes the "
        "other members with it, or no pod is evicted.",
        from_outside=False,
    ),
    Role.SORTS_BY_FIRST_ATTEMPT: RoleRules(
        "`sort_key` is given the time at which the pod was first queued for an attempt, instead of "
        "the time at which it last came back from one.",
        method="sort_key",
    ),
    Role.FILTERS_CANDIDATES: RoleRules(
        "`filter` is asked only about nodes that no earlier plugin rejected, as in kube-scheduler. "
        "The scalar form `filter_node` is always asked so, because each node costs a call.",
        method="filter",
    ),
}
"""Every role with its rules."""


def roles_of(name: str, plugin: object) -> Role:
    """Return the roles that a plugin declares, checked against its methods.

    Parameters
    ----------
    name
        The plugin's name in the configuration; for messages.
    plugin
        The plugin, made already.

    Raises
    ------
    ConfigError
        The declaration is no `Role`, or the plugin lacks the method of a role.
    """
    declared: object = getattr(plugin, "roles", Role.NONE)
    if not isinstance(declared, Role):
        raise ConfigError([f'plugin "{name}": roles: {declared!r} is no Role'])
    faults = [
        f'plugin "{name}": role {role.name} needs the method {rules.method}'
        for role, rules in ROLES.items()
        if role in declared and rules.method and not hasattr(plugin, rules.method)
    ]
    if faults:
        raise ConfigError(faults)
    return declared
