"""Why an owner's pods are not created: quotas, admission, and what the controller says.

A controller reports a refused pod by a condition ReplicaFailure and by Events FailedCreate. The
quotas are looked at anew, because such reports grow old.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from moorage.api.codec import to_dict
from moorage.api.pod import Pod
from moorage.explain.workloads.answer import Stage
from moorage.explain.workloads.owners import Manifests, Owner
from moorage.explain.workloads.quotas import QuotaBound, quota_bounds, unnamed_amounts
from moorage.explain.workloads.stages import PodStage

_EXCEEDED: Final = re.compile(
    r"exceeded quota: (?P<quota>[^,]+), requested: (?P<requested>.+?), used: (?P<used>.+?), "
    r"limited: (?P<limited>\S+)"
)
_FORBIDDEN: Final = re.compile(r'^.*?\bpods? "[^"]*" is forbidden: ', re.DOTALL)
_BEFORE: Final = ("Error creating: ", "error creating: ", "Error create: ")
_REFUSERS: Final = (
    (re.compile(r"violates PodSecurity"), "pod security refuses them"),
    (re.compile(r"admission webhook \"[^\"]*\" denied"), "an admission webhook refuses them"),
    (re.compile(r"ValidatingAdmissionPolicy '"), "an admission policy refuses them"),
    (re.compile(r"(maximum|minimum) .* usage per |max limit to request ratio"), "a limit range"
     " refuses them"),
    (re.compile(r"serviceaccount \"?[^ ]* not found|error looking up service account", re.I),
     "their service account is missing"),
    (re.compile(r"no PriorityClass with name"), "their priority class is missing"),
    (re.compile(r"failed calling webhook"), "an admission webhook does not answer"),
)  # fmt: skip


class Uncreated(msgspec.Struct, frozen=True, kw_only=True):
    """The pods that an owner wants and that do not exist.

    Parameters
    ----------
    pods
        Their number.
    cause
        Why they are not created.
    bounds
        The bounds of quotas that refuse them; empty where quotas do not.
    """

    pods: int
    cause: str
    bounds: tuple[QuotaBound, ...] = ()


def uncreated_pods(
    tree: Sequence[Owner],
    manifests: Manifests,
    missing: int,
    *,
    pod: Pod | None,
    there: Sequence[PodStage],
) -> Uncreated:
    """Return why pods of an owner are not created.

    Parameters
    ----------
    tree
        The owner, and the owners of pods below it.
    missing
        The number of pods that it wants and that do not exist.
    pod
        A pod as the owner would create it; None where no template is known.
    there
        Its pods that exist.
    """
    message = _report(tree, manifests)
    quotas = [
        each
        for each in manifests.of_kind("", "ResourceQuota")
        if each["metadata"].get("namespace") == tree[0].namespace
    ]
    created = None if pod is None else {"apiVersion": "v1", "kind": "Pod", **to_dict(pod)}
    bounds = tuple(
        each
        for each in ([] if created is None else quota_bounds(quotas, created))
        if each.room < missing
    )
    exceeded = _EXCEEDED.search(message)
    if bounds and (exceeded is not None or not message):
        first = bounds[0]
        return Uncreated(
            pods=missing, cause=f"quota {first.quota} is used up: {first.text}", bounds=bounds
        )
    if exceeded is not None:
        return Uncreated(
            pods=missing, cause=_exceeded_text(exceeded, known=bool(quotas and created))
        )
    if message:
        return Uncreated(pods=missing, cause=_refusal(message))
    unnamed = "" if created is None else unnamed_amounts(quotas, created)
    if unnamed and not manifests.of_kind("", "LimitRange"):
        return Uncreated(pods=missing, cause=f"a quota refuses them: {unnamed}")
    return Uncreated(pods=missing, cause=_waiting_text(tree[0], manifests, there))


def _report(tree: Sequence[Owner], manifests: Manifests) -> str:
    """Return what the controllers say of pods that were refused; "" for nothing.

    A condition is taken away when a pod is created, an Event stays. So Events count where no
    condition is known, the newest of all.
    """
    for owner in reversed(tree):
        manifest = manifests.find(owner) or {}
        for each in (manifest.get("status") or {}).get("conditions") or ():
            if each.get("type") == "ReplicaFailure" and each.get("status") == "True":
                return str(each.get("message") or "")
    names = {(each.kind, each.name) for each in tree}
    newest, message = "", ""
    for each in (*manifests.of_kind("", "Event"), *manifests.of_kind("events.k8s.io", "Event")):
        about = each.get("involvedObject") or each.get("regarding")
        if each.get("reason") != "FailedCreate" or not isinstance(about, dict):
            continue
        if (about.get("kind"), about.get("name")) not in names:
            continue
        at = str(each.get("lastTimestamp") or each.get("eventTime") or "")
        if at >= newest:
            newest, message = at, str(each.get("message") or each.get("note") or "")
    return message


def _refusal(message: str) -> str:
    """Return the words of a controller, without the name of the one pod that it tried."""
    text = message
    for each in _BEFORE:
        text = text.removeprefix(each)
    plain = _FORBIDDEN.sub("", text)
    for pattern, words in _REFUSERS:
        if pattern.search(text):
            return f"{words}: {plain}"
    return f"the API server refuses them: {plain}" if plain != text else f"they fail: {text}"


def _exceeded_text(match: re.Match[str], *, known: bool) -> str:
    """Return what a controller says of a quota whose use is not known now, or allows pods now."""
    text = (
        f"quota {match['quota']} refused one: requested {match['requested']}, used "
        f"{match['used']}, limited {match['limited']}"
    )
    return f"{text}; it has room now, and the controller tries again" if known else text


def _waiting_text(root: Owner, manifests: Manifests, there: Sequence[PodStage]) -> str:
    """Return for what a controller waits before it creates further pods."""
    manifest = manifests.find(root) or {}
    spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
    if root.kind == "StatefulSet" and spec.get("podManagementPolicy") != "Parallel":
        unready = [each.pod.name for each in there if each.stage is not Stage.READY]
        if unready:
            name = min(unready, key=lambda each: (len(each), each))
            return (
                f"the StatefulSet creates one after another, and waits for pod {name} to be ready"
            )
    generation = (manifest.get("metadata") or {}).get("generation")
    seen = status.get("observedGeneration")
    if isinstance(generation, int) and (not isinstance(seen, int) or seen < generation):
        return f"the controller of {root.kind}s has not seen the newest version of {root.name}"
    return "the controller has not created them yet, and reports no failure"
