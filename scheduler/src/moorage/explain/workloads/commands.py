"""The kubectl command of a suggestion: a change of the owner's template, of a node or a quota."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from moorage.api.pod import Pod
from moorage.explain.answer import Suggestion
from moorage.explain.patches import patch_command
from moorage.explain.workloads.owners import Manifests, Owner
from moorage.explain.workloads.quotas import QuotaBound

_TEMPLATES: Final = {
    ("apps", "Deployment"): "deployment",
    ("apps", "StatefulSet"): "statefulset",
    ("apps", "DaemonSet"): "daemonset",
}
"""The owners whose template may change, and whose pods are then made anew by their controller."""
_PRIORITY_CLASS: Final = "PriorityClass"
"""The one kind of object that a command creates in a line, before it changes the template."""
_BY_ADMISSION: Final = "/spec/priority"
"""A field of pods that admission fills in from the class."""


def command_of(suggestion: Suggestion, owner: Owner | None, manifests: Manifests, pod: Pod) -> str:
    """Return the kubectl command that makes the change of a suggestion; "" for none.

    Parameters
    ----------
    owner
        The owner whose template makes the pod; None for pods without one.
    pod
        A pod of the template.
    """
    if suggestion.command:
        return suggestion.command
    if not suggestion.patch or owner is None:
        return ""
    if any(each["kind"] != _PRIORITY_CLASS for each in suggestion.create):
        return ""
    word = _TEMPLATES.get((owner.group, owner.kind))
    template = template_of(manifests.find(owner))
    if word is None or template is None:
        return ""
    change = _template_change(template, suggestion.patch, pod)
    if change is None:
        return ""
    what = f"{word} {owner.name}"
    patch = patch_command(owner.namespace, what, {"spec": {"template": {"spec": change}}})
    return " && ".join([*map(_create_command, suggestion.create), patch])


def _create_command(priority_class: Mapping[str, Any]) -> str:
    name, value = priority_class["metadata"]["name"], priority_class["value"]
    return f"kubectl create priorityclass {name} --value={value}"


def quota_command(bounds: Sequence[QuotaBound], pods: int) -> str:
    """Return the kubectl command that raises bounds of one quota for so many more pods."""
    hard = {each.resource: each.raised_to(pods) for each in bounds}
    first = bounds[0]
    return patch_command(first.namespace, f"resourcequota {first.quota}", {"spec": {"hard": hard}})


def template_of(manifest: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the template of an owner's pods; None where it has none."""
    spec = (manifest or {}).get("spec") or {}
    job = spec.get("jobTemplate") or {}
    template = spec.get("template") or (job.get("spec") or {}).get("template")
    return template if isinstance(template, dict) else None


def _template_change(
    template: Mapping[str, Any], patch: Sequence[Mapping[str, Any]], pod: Pod
) -> dict[str, Any] | None:
    """Return the change of a template's spec as a merge patch; None where it cannot be made there.

    A pod has more than its template, so the operations are applied to the template itself: a list
    that only pods have begins empty there.
    """
    import jsonpatch  # a scheduler that nobody asks does not need it

    before = template.get("spec") or {}
    containers = [str(each.get("name")) for each in before.get("containers") or ()]
    if containers != [each.name for each in pod.spec.containers[: len(containers)]]:
        return None  # admission put containers in front: the places in the lists differ
    after: dict[str, Any] = {"spec": copy.deepcopy(before)}
    for each in patch:
        if each["path"] == _BY_ADMISSION or each["op"] == "test":
            continue
        _begin_lists(after, each["path"])
        try:
            after = jsonpatch.JsonPatch([dict(each)]).apply(after)
        except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
            return None
    changed = _difference(before, after["spec"])
    return changed or None


def _begin_lists(tree: dict[str, Any], path: str) -> None:
    """Make the list, or the map, to which an operation adds, where a template lacks it."""
    parts = path.split("/")[1:]
    at: Any = tree
    for part, following in pairwise(parts):
        if not isinstance(at, dict):
            return
        at = at.setdefault(part, [] if following == "-" else {})


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch (RFC 7386) from one tree to another; lists are replaced whole."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            if inner := _difference(old, value):
                patch[name] = inner
        elif old != value or name not in before:
            patch[name] = value
    return patch
