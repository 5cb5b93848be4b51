"""Answers about pod groups, and about Workloads, whose templates groups are made from."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import msgspec

from moorage.api.pod import Pod
from moorage.base.errors import NotFoundError
from moorage.explain.workloads.answer import ObjectExplanation, PodCount, Stage
from moorage.explain.workloads.explaining import Answering, explain_pods
from moorage.explain.workloads.sentences import object_sentence
from moorage.service.core import Core
from moorage.service.groups.incomplete_groups import lack_of
from moorage.snapshot.group_labels import CUSTOM_SOURCE, LABEL_SOURCE
from moorage.snapshot.pod_groups import GroupKey


def explain_group(core: Core, namespace: str, name: str) -> Answering:
    """Explain a pod group of any source: what it lacks, and what keeps its members.

    Raises
    ------
    NotFoundError
        There is no such group.
    """
    keys = [GroupKey(namespace, name, source) for source in ("", CUSTOM_SOURCE, LABEL_SOURCE)]
    groups, composites = core.snapshot.groups, core.snapshot.composites
    if composites is not None:
        keys[0] = composites.root_of(namespace, name)
        keys.append(composites.root_of(namespace, name, composite=True))
        keys = list(dict.fromkeys(keys))
    known = [
        key for key in keys if groups.members(key).pods or groups.source.terms_of(key) is not None
    ]
    if not known:
        return _explain_disabled(core, namespace, name)
    return _answer(core, known, ("podgroup", namespace, name))


def _explain_disabled(core: Core, namespace: str, name: str) -> Answering:
    """Explain a group that no plugin schedules: its pods, and what would turn groups on."""
    disabled = core.disabled_groups
    disabled.update()
    reasons, pods = dict[str, None](), list[Pod]()
    for key, (reason, members) in disabled.members().items():
        if (key.namespace, key.name) == (namespace, name):
            reasons[f"{reason}."] = None
            pods += members
    if not pods:
        keys = [GroupKey(namespace, name, source) for source in ("", CUSTOM_SOURCE)]
        reason = next(filter(None, map(disabled.reason_for_object, keys)), "")
        text = f'podgroups "{name}" not found in {namespace}'
        raise NotFoundError(
            404, "NotFound", f"{text}: no pod names it. If it exists: {reason}" if reason else text
        )
    return _with_notes(core, pods, (*reasons,), ("podgroup", namespace, name))


def _with_notes(
    core: Core, pods: Sequence[Pod], notes: Sequence[str], object_: tuple[str, str, str]
) -> Answering:
    type_, namespace, name = object_
    answer = yield from explain_pods(core, pods, type_=type_, namespace=namespace, name=name)
    return msgspec.structs.replace(answer, notes=(*notes, *answer.notes))


def explain_workload(core: Core, namespace: str, name: str) -> Answering:
    """Explain a Workload: the groups that were made from its templates.

    Raises
    ------
    NotFoundError
        No group was made from it.
    """
    keys = []
    for group in core.snapshot.listers.pod_groups.all():
        made_from = group.spec.pod_group_template_ref
        workload = None if made_from is None else made_from.workload
        if group.namespace == namespace and workload is not None and workload.workload_name == name:
            keys.append(GroupKey(namespace, group.name))
    if not keys:
        raise NotFoundError(
            404, "NotFound", f'no PodGroup in {namespace} was made from Workload "{name}"'
        )
    return _answer(core, sorted(keys), ("workload", namespace, name))


def _answer(
    core: Core, keys: Sequence[GroupKey], object_: tuple[str, str, str]
) -> Generator[None, None, ObjectExplanation]:
    groups, wanted, missing = core.snapshot.groups, 0, list[PodCount]()
    pods: list[Pod] = []
    for key in keys:
        members, terms = groups.members(key), groups.source.terms_of(key)
        pods += members.pods.values()
        lack = lack_of(key, terms, members)
        least = len(members.pods) if terms is None or not terms.gang else terms.minimum
        wanted += max(least, len(members.pods))
        lacking = 0 if terms is None or not terms.gang else members.pods_missing(terms)
        if lack and lacking:
            missing.append(PodCount(stage=Stage.NOT_CREATED, pods=lacking, cause=lack))
    type_, namespace, name = object_
    answer = yield from explain_pods(core, pods, type_=type_, namespace=namespace, name=name)
    counts = (*missing, *answer.counts)
    sentence = object_sentence(counts, ready=answer.ready, wanted=wanted, pods=answer.pods)
    return msgspec.structs.replace(answer, sentence=sentence, wanted=wanted, counts=counts)
