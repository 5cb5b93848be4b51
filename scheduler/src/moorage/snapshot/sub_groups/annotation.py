"""The sub-groups of coscheduling's groups: one annotation, on the PodGroup or on every pod.

``moorage.dev/sub-groups: "role: prefill=2@topology.kubernetes.io/rack, decode=4"`` says that the
value of the pod label ``role`` names the sub-group, that at least 2 pods of ``prefill`` have to
fit, all in one rack, and at least 4 of ``decode``. The annotation is moorage's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from moorage.api.coscheduling import SUB_GROUPS
from moorage.api.names import label_value_faults, qualified_name_faults
from moorage.snapshot.sub_groups.parts import Part, Parts

_FORM = "LABEL: NAME=MINIMUM[@TOPOLOGY LABEL], ..."


def sub_groups_of(
    annotations: Mapping[str, str], owner: str, minimum: int
) -> tuple[Parts | None, str]:
    """Return the sub-groups that annotations ask for, None for none, and what is wrong or "".

    Parameters
    ----------
    annotations
        Those of the group's object, or of a pod.
    owner
        The object with the annotations, for the message.
    minimum
        How many pods the group needs in all.
    """
    text = annotations.get(SUB_GROUPS)
    if text is None:
        return None, ""
    parts, why = _parsed(text)
    if parts is not None:
        least = sum(part.minimum for part in parts.root.parts)
        if least <= minimum:
            return parts, ""
        why = f"its sub-groups need {least} pods, and the group only {minimum}"
    return None, f'annotation {SUB_GROUPS} of {owner} is "{text}": {why}'


@lru_cache(maxsize=1024)
def _parsed(text: str) -> tuple[Parts | None, str]:
    label, colon, rest = text.partition(":")
    if not colon or not rest.strip():
        return None, f"not of the form {_FORM}"
    label = label.strip()
    faults = qualified_name_faults(label)
    if faults:
        return None, f'"{label}" is not a label key: {"; ".join(faults)}'
    leaves: dict[str, Part] = {}
    for item in rest.split(","):
        leaf, why = _leaf(item.strip())
        if leaf is None:
            return None, why
        if leaf.name in leaves:
            return None, f"sub-group {leaf.name} is there twice"
        leaves[leaf.name] = leaf
    root = Part(name="", minimum=len(leaves), of_parts=True, parts=tuple(leaves.values()))
    return Parts(root=root, label=label, text=text), ""


def _leaf(item: str) -> tuple[Part | None, str]:
    """Return a sub-group, or None and what is wrong with it."""
    named, at, key = (each.strip() for each in item.partition("@"))
    name, equals, number = (each.strip() for each in named.partition("="))
    if not equals or not name:
        return None, f'"{item}" is not of the form NAME=MINIMUM[@TOPOLOGY LABEL]'
    faults = label_value_faults(name)
    if faults:
        return None, f'"{name}" is not a label value: {"; ".join(faults)}'
    if not (number.isascii() and number.isdigit() and 1 <= int(number) < 1 << 31):
        return None, f'the minimum of {name} is "{number}", not a whole number of at least 1'
    if at:
        faults = qualified_name_faults(key)
        if faults:
            return None, f'the topology of {name} is "{key}", not a label key: {"; ".join(faults)}'
    return Part(name=name, minimum=int(number), topology_key=key), ""
