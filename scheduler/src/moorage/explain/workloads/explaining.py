"""The whole answer about a workload, a selection of pods, or a namespace.

Each answer is given in steps (a generator), as a large workload takes some tenths of a second:
a running scheduler decides about other pods between two steps.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from moorage.api.codec import from_dict
from moorage.api.pod import Pod, PodStatus
from moorage.base.errors import DecodeError
from moorage.config.defaults import DEFAULT_SCHEDULER_NAME
from moorage.explain.answer import Explanation, Where
from moorage.explain.explaining import explain
from moorage.explain.workloads.answer import (
    ObjectExplanation,
    ObjectSuggestion,
    Stage,
)
from moorage.explain.workloads.changes import HelpedPods, more_nodes_for, number_helped
from moorage.explain.workloads.commands import command_of, quota_command, template_of
from moorage.explain.workloads.creation import Uncreated, uncreated_pods
from moorage.explain.workloads.folding import PLAIN, FoldedPods
from moorage.explain.workloads.owners import Manifests, Owner, owner_tree, pods_of
from moorage.explain.workloads.placing import PLACED_MOST, copies_of, has_claims, number_placed
from moorage.explain.workloads.sentences import object_sentence
from moorage.explain.workloads.stages import PodStage, stage_of
from moorage.explain.workloads.wanted import DAEMON_SET, Wanted, wanted_pods
from moorage.service.core import Core

Answering: TypeAlias = Generator[None, None, ObjectExplanation]
_SUGGESTIONS_MOST: Final = 4
_EXISTING: Final = frozenset(Stage) - {Stage.NOT_CREATED, Stage.TERMINATING, Stage.ENDED}


class OwnedPods(msgspec.Struct, frozen=True):
    """The pods of an owner, and how many it wants.

    Parameters
    ----------
    tree
        The owner, and the owners of pods below it.
    stages
        All its pods, each with its stage.
    there
        Those that exist and have not ended.
    wanted
        How many it wants.
    """

    tree: Sequence[Owner]
    stages: Sequence[PodStage]
    there: Sequence[PodStage]
    wanted: Wanted

    @property
    def missing(self) -> int:
        """How many pods it wants that do not exist."""
        return max(0, (self.wanted.pods or 0) - len(self.there))


def owned_pods(core: Core, root: Owner, manifests: Manifests) -> OwnedPods:
    """Return the pods of an owner, and how many it wants."""
    tree = owner_tree(core, root, manifests)
    stages = [stage_of(core, pod) for pod in pods_of(core, tree)]
    there = [each for each in stages if each.stage in _EXISTING]
    return OwnedPods(tree, stages, there, wanted_pods(core, tree, manifests, there=len(there)))


def complete(steps: Answering) -> ObjectExplanation:
    """Take every step of an answer at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            answer: ObjectExplanation = end.value
            return answer


def explain_owner(core: Core, root: Owner, manifests: Manifests) -> Answering:
    """Explain an owner of pods: how many are ready, what keeps the rest, and what would help.

    Parameters
    ----------
    core
        The deciding half of a scheduler; it is as before afterwards.
    root
        The owner.
    manifests
        Manifests that the scheduler does not watch: the owner and owners below it, Events about
        pods that were not created, quotas and limit ranges of the namespace.
    """
    owned = owned_pods(core, root, manifests)
    tree, there, wanted = owned.tree, owned.there, owned.wanted
    folded = FoldedPods(core, owned.stages)
    yield from folded.explain_pending()
    suggestions, notes = list[ObjectSuggestion](), wanted.notes
    if owned.missing:
        model = model_pod(core, tree, manifests, there)
        uncreated = uncreated_pods(tree, manifests, owned.missing, pod=model, there=there)
        folded.add_uncreated(owned.missing, uncreated.cause)
        yield
        suggestions += raised_quota(core, uncreated, model, root)
        if model is not None and not any(each.helps == each.tried for each in suggestions):
            yield
            notes += _without_node(core, model)
    yield
    suggestions += yield from _changes(core, folded, _maker(tree, manifests), manifests)
    counts, ready = folded.counts(), folded.number(Stage.READY)
    yield
    return ObjectExplanation(
        type_=root.kind.lower(),
        namespace=root.namespace,
        name=root.name,
        sentence=object_sentence(counts, ready=ready, wanted=wanted.pods, pods=len(there)),
        wanted=wanted.pods,
        pods=len(there),
        ready=ready,
        counts=counts,
        suggestions=best_suggestions(suggestions),
        notes=(*notes, *_notes(folded)),
    )


def explain_pods(
    core: Core, pods: Sequence[Pod], *, type_: str = "pods", namespace: str = "", name: str = ""
) -> Answering:
    """Explain a selection of pods: how many are ready, and what keeps the rest."""
    stages = [stage_of(core, pod) for pod in sorted(pods, key=lambda each: each.key)]
    folded = FoldedPods(core, stages)
    yield from folded.explain_pending()
    yield
    suggestions = yield from _changes(core, folded, None, Manifests())
    counts, ready = folded.counts(), folded.number(Stage.READY)
    number = folded.number(*_EXISTING)
    return ObjectExplanation(
        type_=type_,
        namespace=namespace,
        name=name,
        sentence=object_sentence(counts, ready=ready, wanted=None, pods=number),
        pods=number,
        ready=ready,
        counts=counts,
        suggestions=best_suggestions(suggestions),
        notes=_notes(folded),
    )


# --- suggestions ----------------------------------------------------------------------------------


def _changes(
    core: Core, folded: FoldedPods, maker: Owner | None, manifests: Manifests
) -> Generator[None, None, list[ObjectSuggestion]]:
    """Try the suggestions of the largest class of pending pods for all pods of it."""
    if folded.main is None:
        return []
    class_, explanation = folded.main
    profile = core.profiles.get(class_.example.spec.scheduler_name)
    if profile is None or not explanation.suggestions:
        return []
    helped = HelpedPods(core, profile, class_.pods)
    changes = []
    for each in explanation.suggestions:
        if each.kind == "node" and not helped.in_gang:
            continue  # the number of nodes is changes below
        yield
        changes.append(
            ObjectSuggestion(
                kind=each.kind,
                text=each.text,
                helps=number_helped(helped, each),
                tried=helped.tried,
                of=len(class_.pods),
                command=command_of(each, maker, manifests, class_.example),
                patch=each.patch,
                delete=each.delete,
                also_delete=each.also_delete,
                create=each.create,
            )
        )
    if not helped.in_gang and any(each.kind == "node" for each in explanation.suggestions):
        yield
        changes += more_nodes_for(helped)
    return [each for each in changes if each.helps]


def raised_quota(
    core: Core, uncreated: Uncreated, model: Pod | None, root: Owner
) -> list[ObjectSuggestion]:
    """Return the quota that would have to be raised, where a single one refuses the pods."""
    quotas = {each.quota for each in uncreated.bounds}
    if len(quotas) != 1 or model is None:
        return []
    number = uncreated.pods
    raised = ", ".join(
        f"{each.resource} from {each.written} to {each.raised_to(number)}"
        for each in uncreated.bounds
    )
    text, sample = f"raise quota {quotas.pop()}: {raised}", min(number, PLACED_MOST)
    helps, profile = sample, core.profiles.get(model.spec.scheduler_name)
    tried = profile is not None and (root.group, root.kind) != DAEMON_SET and not has_claims(model)
    if tried and profile is not None:
        helps = number_placed(profile, core.snapshot, copies_of(model, sample))
    if not helps:
        return []
    if helps < sample:
        text = f"{text}; {number} more pods are created, and only {helps} of them get a node"
    return [
        ObjectSuggestion(
            kind="quota",
            text=text,
            helps=helps,
            tried=sample,
            of=number,
            command=quota_command(uncreated.bounds, number),
        )
    ]


def _without_node(core: Core, model: Pod) -> tuple[str, ...]:
    """Return a note where a pod that does not exist would get no node either."""
    explanation = explain(core, model, PLAIN)
    if explanation.where not in {Where.REJECTED, Where.NEVER}:
        return ()
    return (f"If it were created, the next pod would get no node: it {explanation.sentence}.",)


def best_suggestions(suggestions: Sequence[ObjectSuggestion]) -> tuple[ObjectSuggestion, ...]:
    """Return a few suggestions: first the smallest of those that help most of the pods."""
    ranked = sorted(suggestions, key=_rank)
    return tuple(ranked[:_SUGGESTIONS_MOST])


def _rank(suggestion: ObjectSuggestion) -> tuple[bool, int]:
    """Return the rank of a suggestion; the sort keeps the order of those of one rank."""
    helps_most = 2 * suggestion.helps > suggestion.tried
    return not helps_most, 0 if helps_most else -suggestion.helps


def _notes(folded: FoldedPods) -> tuple[str, ...]:
    """Return the notes about the pod that was explained for the largest class."""
    if folded.main is None or folded.main[1].where is Where.FITS:
        return ()
    explanation: Explanation = folded.main[1]
    return explanation.notes


# --- pods that do not exist -----------------------------------------------------------------------


def _maker(tree: Sequence[Owner], manifests: Manifests) -> Owner | None:
    """Return the first owner of a tree that has a template of pods."""
    return next((each for each in tree if template_of(manifests.find(each)) is not None), None)


def model_pod(
    core: Core, tree: Sequence[Owner], manifests: Manifests, there: Sequence[PodStage]
) -> Pod | None:
    """Return a pod as the owner would create it, from its template, or like one that exists."""
    maker = _maker(tree, manifests)
    template = None if maker is None else template_of(manifests.find(maker))
    if there and (template is None or _is_current(there[0].pod, template)):
        return copies_of(there[0].pod, 1)[0]
    if maker is None or template is None:
        return None
    metadata = template.get("metadata") or {}
    spec = dict(template.get("spec") or {})
    spec["schedulerName"] = spec.get("schedulerName") or DEFAULT_SCHEDULER_NAME
    class_name = str(spec.get("priorityClassName") or "")
    if class_name:
        known = core.snapshot.listers.priority_classes.get(class_name, "")
        spec["priority"] = 0 if known is None else known.value
    manifest = {
        "metadata": {
            "name": f"{maker.name}-0",
            "namespace": maker.namespace,
            "uid": f"{maker.uid}-0",
            "labels": metadata.get("labels") or {},
            "annotations": metadata.get("annotations") or {},
        },
        "spec": spec,
    }
    try:
        return msgspec.structs.replace(from_dict(Pod, manifest), status=PodStatus(phase="Pending"))
    except DecodeError:
        return None


def _is_current(pod: Pod, template: dict[str, Any]) -> bool:
    """Whether a pod requests what a template says: else it is of an older revision."""
    wanted = [
        ((each.get("resources") or {}).get("requests") or {})
        for each in (template.get("spec") or {}).get("containers") or ()
    ]
    there = [dict(each.resources.requests) for each in pod.spec.containers]
    return wanted == there[: len(wanted)]
