"""Writes the reference page of capabilities and roles: their meaning, and who declares them."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.framework.capabilities import TRAITS, Trait, capabilities_of
from moorage.framework.roles import ROLES, Role, RoleRules, roles_of
from moorage.plugins.in_tree import IN_TREE, OPTIONAL
from tools.pages.plugin_pages import made

_HEAD = """# Capabilities

<!-- Written by `make docs` from the program. Do not edit. -->

A capability is what a plugin can do beyond the methods of its
[extension points](plugin-points.md). A plugin declares its capabilities in one place, the
attribute `capabilities`: a `Capabilities` of `moorage.plugin`, or a method that returns one.

```python
class FewestPods:
    name = "FewestPods"
    capabilities = plugin.Capabilities(score_reads=plugin.Reads.PODS, shape_parts=())
```

The declaration is read once, when the scheduler starts. The scheduler does not start when a
capability needs a method or another capability that is not there, when two contradict each other,
or when a plugin has an attribute of a capability's name that it does not declare. No capability
changes a decision. What does is a [role](#roles).

Times below are medians of the CPU time of one decision with the capability and without it in any
plugin: `moorage bench basic` with 2000 nodes, for `filter_room` `moorage bench workload preemption`
with 500 nodes and 2000 pods, on a busy 2-core machine, 2026-11-22.

"""


_ROLES = """
## Roles

A role is what a plugin does in its profile, where the scheduler must know it to decide rightly. A
plugin declares its roles in the attribute `roles`: a `Role` of `moorage.plugin`, several joined by
`|`.

```python
class EvictsBatchJobs:
    name = "EvictsBatchJobs"
    roles = plugin.Role.PREEMPTS
```

"""


def capabilities_page() -> str:
    """Return the page."""
    users: dict[str, list[str]] = {name: [] for name in TRAITS}
    actors: dict[Role, list[str]] = {role: [] for role in ROLES}
    for entry in sorted((*IN_TREE, *OPTIONAL), key=lambda each: each.name):
        plugin = made(entry)
        for name in capabilities_of(entry.name, plugin).declared():
            users[name].append(entry.name)
        for role in roles_of(entry.name, plugin):
            actors[role].append(entry.name)
    capabilities = "\n".join(_section(name, trait, users[name]) for name, trait in TRAITS.items())
    roles = "\n".join(_role(role, rules, actors[role]) for role, rules in ROLES.items())
    return _HEAD + capabilities + _ROLES + roles


def _section(name: str, trait: Trait, users: list[str]) -> str:
    called = f"`{name}({', '.join(trait.arguments)})`. " if trait.arguments else ""
    lines = [f"## {name}\n", f"{called}{trait.meaning}\n"]
    if trait.saves:
        lines.append(f"- Saves: {trait.saves}")
    if trait.methods:
        lines.append(f"- Needs the method {' or '.join(f'`{each}`' for each in trait.methods)}.")
    if trait.beside:
        lines.append(f"- Needs the capability {', '.join(f'`{each}`' for each in trait.beside)}.")
    if not trait.from_outside:
        lines.append("- Only in-tree plugins may declare it.")
    return "\n".join([*lines, _declared_by(users)]) + "\n"


def _role(role: Role, rules: RoleRules, users: list[str]) -> str:
    lines = [f"### {role.name}\n", f"{rules.meaning}\n"]
    if rules.method:
        lines.append(f"- Needs the method `{rules.method}`.")
    if not rules.from_outside:
        lines.append("- Only in-tree plugins may declare it.")
    return "\n".join([*lines, _declared_by(users)]) + "\n"


def _declared_by(plugins: Iterable[str]) -> str:
    links = ", ".join(f"[{each}](plugins/{each}.md)" for each in plugins)
    return f"- Declared by: {links or 'no in-tree plugin'}."
