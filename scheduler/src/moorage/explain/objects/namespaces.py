"""The answer about a namespace: its pods by state and cause, pods that do not exist, its quotas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from moorage.api.quantity import parse_quantity
from moorage.base.errors import NotFoundError
from moorage.explain.workloads.answer import AmountUse, ObjectSuggestion, PodCount, Stage
from moorage.explain.workloads.creation import uncreated_pods
from moorage.explain.workloads.explaining import (
    Answering,
    best_suggestions,
    explain_pods,
    model_pod,
    owned_pods,
    raised_quota,
)
from moorage.explain.workloads.owners import Manifests, Owner
from moorage.explain.workloads.sentences import object_sentence
from moorage.explain.workloads.wanted import DAEMON_SET, JOB, REPLICATED
from moorage.service.core import Core

_OWNERS: Final = (*sorted(REPLICATED), DAEMON_SET, JOB)


def explain_namespace(core: Core, namespace: str, manifests: Manifests) -> Answering:
    """Explain a namespace.

    Raises
    ------
    NotFoundError
        There is no such namespace, as far as is known.
    """
    pods = [pod for pod in core.store.all_pods() if pod.metadata.namespace == namespace]
    known = core.snapshot.listers.namespaces.get(namespace, "") is not None
    if not (pods or known or any(manifests.everything())):
        raise NotFoundError(404, "NotFound", f'namespaces "{namespace}" not found')
    answer = yield from explain_pods(core, pods, type_="namespace", name=namespace)
    yield
    suggestions, uncreated = list[ObjectSuggestion](), list[PodCount]()
    for count, raised in _uncreated(core, namespace, manifests):
        uncreated.append(count)
        suggestions += raised
    ready = [each for each in answer.counts if each.stage is Stage.READY]
    others = [each for each in answer.counts if each.stage is not Stage.READY]
    counts = (*sorted((*uncreated, *others), key=_rank), *ready)
    wanted = answer.pods + sum(each.pods for each in uncreated)
    return msgspec.structs.replace(
        answer,
        sentence=object_sentence(
            counts, ready=answer.ready, wanted=wanted if uncreated else None, pods=answer.pods
        ),
        wanted=wanted,
        counts=counts,
        suggestions=best_suggestions((*suggestions, *answer.suggestions)),
        amounts=tuple(_quota_use(manifests, namespace)),
    )


def _rank(count: PodCount) -> tuple[bool, int]:
    return count.stage in {Stage.TERMINATING, Stage.ENDED}, -count.pods


def _uncreated(
    core: Core, namespace: str, manifests: Manifests
) -> Iterator[tuple[PodCount, list[ObjectSuggestion]]]:
    """Yield the pods that owners of a namespace want and that do not exist, and what would help."""
    for group, kind in _OWNERS:
        for manifest in manifests.of_kind(group, kind):
            meta = manifest["metadata"]
            is_below = any(each.get("controller") for each in meta.get("ownerReferences") or ())
            if is_below or (meta.get("namespace") or "") != namespace:
                continue
            owner = Owner(group, kind, namespace, str(meta["name"]), str(meta.get("uid") or ""))
            owned = owned_pods(core, owner, manifests)
            if owned.missing:
                tree, there = owned.tree, owned.there
                model = model_pod(core, tree, manifests, there)
                uncreated = uncreated_pods(tree, manifests, owned.missing, pod=model, there=there)
                cause = f"{kind} {owner.name}: {uncreated.cause}"
                count = PodCount(stage=Stage.NOT_CREATED, pods=owned.missing, cause=cause)
                yield count, raised_quota(core, uncreated, model, owner)


def _quota_use(manifests: Manifests, namespace: str) -> Iterator[AmountUse]:
    """Yield the use of the quotas of a namespace."""
    for quota in manifests.of_kind("", "ResourceQuota"):
        if (quota["metadata"].get("namespace") or "") != namespace:
            continue
        used: dict[str, Any] = (quota.get("status") or {}).get("used") or {}
        for name, bound in sorted(((quota.get("spec") or {}).get("hard") or {}).items()):
            use = str(used.get(name, "0"))
            full = parse_quantity(use) >= parse_quantity(str(bound))
            yield AmountUse(
                of=f"quota {quota['metadata']['name']}",
                resource=name,
                used=use,
                most=str(bound),
                note="full" if full else "",
            )
