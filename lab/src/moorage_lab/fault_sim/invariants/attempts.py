"""An oracle for every attempt: a slow, plain, whole computation of what its decision must be.

It starts from the versions of pods and nodes that the scheduler's watches have told, and asks the
rules of this room about each node. So it needs no time to have passed, and finds what caches,
columns and reused answers get wrong, as well as a filter that compares wrongly. Attempts are not
judged where these rules do not say all: members of groups, claims, plugins and extenders of the
simulation's own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from moorage.api.coscheduling import GROUP_LABEL
from moorage.api.resources import ELASTIC_QUOTAS, POD_DISRUPTION_BUDGETS
from moorage.base.clock import NS_PER_SECOND
from moorage.engine.decision import Decision, Outcome
from moorage.framework.profile import Profile
from moorage.service.scheduler import Scheduler
from moorage.snapshot.shape import host_ports
from moorage.state.queued_pod import QueuedPod
from moorage_lab.fault_sim.broken_plugin import BrokenPlugin
from moorage_lab.fault_sim.delayed_step import DelayedStep
from moorage_lab.fault_sim.history import History, Obj, name_of, node_of, priority_of
from moorage_lab.fault_sim.invariants.attached import ATTACHED
from moorage_lab.fault_sim.invariants.on_node import (
    ON_NODE,
    ports,
    requested_resources,
    resources_of_devices,
)
from moorage_lab.fault_sim.invariants.together import TOGETHER
from moorage_lab.fault_sim.invariants.victims import Candidate, best_nodes, candidate_on
from moorage_lab.fault_sim.invariants.write_case import is_leaving, placed
from moorage_lab.fault_sim.reference.answers import (
    Decoder,
    is_current,
    volumes_are_known,
    wrong_node,
    wrong_reasons,
    wrong_total,
)
from moorage_lab.fault_sim.reference.attempt import Question

OnBreach = Callable[[str, str], None]
"""Gets the name of an invariant, and how it does not hold."""

# The promises of nodes are taken from the scheduler here, not from the statuses of pods.
_RULES: Final = tuple(
    each for each in (*ON_NODE, *TOGETHER, *ATTACHED) if each.name != "promised-room"
)
# Plugins that reject pods by rules which this module does not know.
_UNKNOWN: Final = frozenset({BrokenPlugin.name, DelayedStep.name})
_OF_GROUPS: Final = ("schedulingGroup", "resourceClaims", "schedulingGates")


class Belief(msgspec.Struct, frozen=True):
    """What a scheduler must know at a moment.

    Parameters
    ----------
    history
        Its pods and nodes, as the watches told them. A pod that was assumed is on its node, in the
        version in which it was decided, as upstream.
    announced
        The same without what wakes no pod, as upstream: the assumption of a pod, the begin of its
        deletion, and the end of its node. The events of its binding and of its end come later.
    nominated
        The pods whose status names a node, each as if it were there. When an attempt withdraws a
        nomination, other pods wake at the update of this status, as upstream.
    promised
        The pods to which it has promised a node, each as if it were there.
    unqueued
        Uids of the promised pods that are in no sub-queue.
    decided
        The assumed pods by uid, in the versions in which they were decided.
    """

    history: History
    announced: History
    nominated: tuple[Obj, ...]
    promised: tuple[Obj, ...]
    unqueued: frozenset[str]
    decided: Mapping[str, Obj]


class AttemptOracle:
    """Judges each attempt of a scheduler, and the pods that it leaves asleep.

    Parameters
    ----------
    scheduler
        The scheduler. Its recorder is told of each decision through this oracle from now on.
    history
        The server's objects.
    on_breach
        Told of an invariant that does not hold.
    """

    def __init__(self, scheduler: Scheduler, history: History, on_breach: OnBreach) -> None:
        self._scheduler = scheduler
        self._history = history
        self._on_breach = on_breach
        self.judged = 0
        """Attempts that were judged."""
        self.compared: object = None
        """What the scheduler's table was made of when it was last compared with a new one."""
        # What was known when the sleeping pods were last looked at, and those found then.
        self._looked_at: object = None
        self._asleep: set[str] = set()
        self._decoder = Decoder()
        recorder = scheduler.core.recorder
        assert recorder is not None, "the schedulers of a simulation keep records"
        self._decided = recorder.decided
        vars(recorder).update(decided=self.decided)

    def decided(self, queued: QueuedPod, decision: Decision, *args: Any, **options: Any) -> None:
        """Record a decision, as the recorder does, and judge it."""
        self._decided(queued, decision, *args, **options)
        profile = self._scheduler.core.profiles.get(queued.profile)
        if profile is None or not self._has_known_rules(profile):
            return
        diagnosis = decision.diagnosis
        if diagnosis is not None and _UNKNOWN & diagnosis.unschedulable_plugins:
            return
        if (belief := self._belief()) is None:
            return
        pod = belief.history.pods.get(queued.uid)
        if pod is None or decision.outcome is Outcome.ERROR or not self._is_alone(pod):
            return
        if self._wants_forgotten_port(pod):
            return
        if self._is_plain(pod):
            self.judged += 1
            self._judge(pod, decision, profile, belief)
        elif not belief.promised and not any(map(_has_volumes, belief.decided.values())):
            self._judge_stored(pod, decision, profile, belief)

    def _breach(self, name: str, text: str) -> None:
        seconds = self._history.history_now_ns / NS_PER_SECOND
        self._on_breach(name, f"{text} (at {seconds:.3f} s)")

    # -- what the scheduler must know ----------------------------------------------------------

    def _is_known(self, profile: Profile) -> bool:
        """Return whether the rules of this room are those of a profile, and no plugin adds one."""
        return self._has_known_rules(profile) and not _UNKNOWN & profile.plugins.keys()

    def _has_known_rules(self, profile: Profile) -> bool:
        """Return whether this room knows the rules of a profile, but for plugins that it names."""
        return not profile.extenders and not self._history.server_objects(ELASTIC_QUOTAS.qualified)

    def _belief(self) -> Belief | None:
        """Return what the watches have told; None where a version of it is unknown here."""
        parts, core = self._scheduler.parts, self._scheduler.core
        known, dump = copy.copy(self._history), core.cache.dump()
        nodes = self._objects_written(parts.nodes.known_objects)
        pods = self._objects_written(parts.others[0].known_objects)
        if nodes is None or pods is None:
            return None
        known.nodes = {node["metadata"]["name"]: node for node in nodes}
        known.pods = {pod["metadata"]["uid"]: pod for pod in pods}
        announced = copy.copy(known)
        announced.pods = {uid: _staying(pod) for uid, pod in known.pods.items()}
        last_nodes = {name: self._history.last_nodes.get(name) for name in map(node_of, pods)}
        announced.nodes = {name: node for name, node in last_nodes.items() if node} | known.nodes
        decided = {uid: dump.pods[uid].metadata.resource_version for uid in dump.assumed}
        if not self._history.versions.keys() >= set(decided.values()):
            return None
        for uid, version in decided.items():
            if uid in known.pods:
                known.pods[uid] = _on(self._history.versions[version], dump.node_of_pod[uid])
        nominator = core.queue.nominator
        promises = [(uid, node) for uid, node in nominator if node and uid in known.pods]
        return Belief(
            known,
            announced,
            tuple(_on(pod, node) for pod in pods if (node := _nominated_node(pod))),
            tuple(_on(known.pods[uid], node) for uid, node in promises),
            frozenset(uid for uid, _ in promises if nominator.queued_version(uid) is None),
            {uid: self._history.versions[version] for uid, version in decided.items()},
        )

    def _objects_written(self, objects: Mapping[Any, Any]) -> list[Obj] | None:
        """Return the objects of a reflector as the server wrote them."""
        versions = self._history.versions
        written = [versions.get(each.metadata.resource_version) for each in objects.values()]
        return None if None in written else [each for each in written if each is not None]

    def _is_plain(self, pod: Obj) -> bool:
        """Return whether the rules of this room say all about a pod."""
        volumes = pod["spec"].get("volumes") or ()
        # The assumptions of a plugin about claims are not known here.
        return self._is_alone(pod) and all("gcePersistentDisk" in each for each in volumes)

    def _is_alone(self, pod: Obj) -> bool:
        """Return whether a pod waits, and needs no group and no device."""
        spec = pod["spec"]
        if any(spec.get(field) for field in _OF_GROUPS) or node_of(pod) or is_leaving(pod):
            return False
        if requested_resources(pod) & resources_of_devices(self._history):
            return False
        return GROUP_LABEL not in pod["metadata"].get("labels", {})

    def _wants_forgotten_port(self, pod: Obj) -> bool:
        """Return whether a pod wants a port that counts as free while a pod of the node has it.

        Two pods have had it, and one has left: so it is upstream. A port that is taken by nobody,
        or that two pods get, is found by other rules.
        """
        snapshot, wanted = self._scheduler.core.snapshot, set(ports(pod))
        for row in range(snapshot.num_nodes) if wanted else ():
            used = {port for _, _, port in snapshot.port_sets.at(row)}
            pods = (info.pod for info in snapshot.pods(row))
            if any(port in wanted - used for each in pods for _, _, port in host_ports(each)):
                return True
        return False

    # -- decisions -----------------------------------------------------------------------------

    def _judge(self, pod: Obj, decision: Decision, profile: Profile, belief: Belief) -> None:
        promised = list(_weighty(pod, belief.promised))
        if any(each["metadata"]["uid"] in belief.unqueued for each in promised):
            return  # such a pod counts without its requests, as upstream
        feasible = [
            name for name in belief.history.nodes if _passes(pod, name, belief.history, promised)
        ]
        if decision.outcome is Outcome.REJECT and not feasible:
            if not promised:
                self._judge_answers(pod, decision, belief, wrong_reasons)
            if self._is_known(profile):  # a dry run may meet the fault of a plugin
                self._judge_victims(pod, decision, profile, belief)
            return
        node = decision.node_name or "no node"
        if decision.node_name not in feasible:
            fits = ", ".join(feasible) or "none"
            self._breach("attempt-node", f"{name_of(pod)} gets {node}; of its nodes fit: {fits}")
        elif self._counts_all(decision, profile) and decision.feasible != len(feasible):
            self._breach(
                "attempt-node",
                f"{name_of(pod)}: {decision.feasible} nodes passed the filters, and there are "
                f"{len(feasible)}: {', '.join(feasible)}",
            )
        else:
            judge = partial(wrong_total, profile=profile, feasible=feasible)
            self._judge_answers(pod, decision, belief, judge)

    def _judge_answers(
        self,
        pod: Obj,
        decision: Decision,
        belief: Belief,
        judge: Callable[[Question, Decision], Iterable[str]],
    ) -> None:
        """Compare totals or reasons."""
        for text in judge(self._question(pod, belief), decision):
            self._breach("attempt-answers", text)

    def _question(self, pod: Obj, belief: Belief) -> Question:
        listers = self._scheduler.core.snapshot.listers
        return self._decoder.question(pod, belief.history, belief.decided, listers)

    def _judge_stored(self, pod: Obj, decision: Decision, profile: Profile, belief: Belief) -> None:
        """Judge the node of a pod with claims of volumes, for which nothing is under way."""
        question = self._question(pod, belief)
        if volumes_are_known(question, self._history):
            self.judged += 1
            for text in wrong_node(question, decision, profile):
                self._breach("attempt-answers", text)

    def _counts_all(self, decision: Decision, profile: Profile) -> bool:
        """Return whether the search looked at every node: none was enough for it before."""
        return bool(profile.scores) and decision.pod.pod.status.nominated_node_name == ""

    def _judge_victims(
        self, pod: Obj, decision: Decision, profile: Profile, belief: Belief
    ) -> None:
        """Compare the victims with those of a dry run on each node."""
        if not profile.preempting or self._awaits_victims(pod, belief):
            return
        if pod["spec"].get("preemptionPolicy") == "Never":
            return
        budgets = self._history.server_objects(POD_DISRUPTION_BUDGETS.qualified)
        if not is_current(self._scheduler.core.snapshot.listers.pod_disruption_budgets, budgets):
            return  # the watch of budgets is behind: their older versions are unknown here
        if profile.evicts_whole_gangs and any(map(_of_gang, belief.history.pods.values())):
            return
        leaving = self._leaving(belief.history)
        left = _leaving_soon(belief.history, leaving)
        candidates: dict[str, Candidate] = {}
        for name in belief.history.nodes:

            def fits(gone: Iterable[str], name: str = name) -> bool:
                return _passes(pod, name, left, list(_weighty(pod, belief.promised)), gone)

            candidate = candidate_on(
                name,
                pod,
                belief.history,
                budgets=budgets.values(),
                leaving=leaving,
                now_ns=self._scheduler.parts.clock.now_ns(),
                fits=fits,
            )
            if candidate is not None:
                candidates[name] = candidate
        for text in _wrong_victims(pod, decision, candidates):
            self._breach("attempt-victims", text)

    def _awaits_victims(self, pod: Obj, belief: Belief) -> bool:
        """Return whether a pod may wait for victims that it has already."""
        uid = pod["metadata"]["uid"]
        own = any(each["metadata"]["uid"] == uid for each in belief.promised)
        waits = self._scheduler.core.evictions.waits_for_victims(uid)
        return own or waits or _awaits(pod, belief.history)

    def _leaving(self, history: History) -> set[str]:
        """Return the uids of the pods that an earlier preemptor has made leave."""
        ledger, store = self._scheduler.core.evictions, self._scheduler.core.store
        known = [pod for pod in store.all_pods() if pod.uid in ledger.requested]
        return {pod.uid for pod in known if pod.uid in history.pods and ledger.will_leave(pod)}

    # -- wake-ups ------------------------------------------------------------------------------

    def look_for_sleepers(self) -> None:
        """Look for pods that wait for an event, and fit on a node by now.

        Nobody is looked for while a binding or an attempt is under way: their ends are events.
        """
        core = self._scheduler.core
        pending = core.queue.pending()
        if pending.in_flight or not pending.unschedulable or core.cache.dump().assumed:
            return
        if not all(map(self._is_known, core.profiles.values())):
            return
        if (belief := self._belief()) is None:
            return
        objects = (*belief.history.nodes.values(), *belief.history.pods.values())
        versions = [each["metadata"]["resourceVersion"] for each in objects]
        looked_at = versions, list(map(name_of, belief.promised))
        if looked_at == self._looked_at:
            return
        self._looked_at = looked_at
        asleep = [each.pod.uid for each in pending.unschedulable]
        self._asleep.intersection_update(asleep)
        for uid in asleep:
            pod = belief.history.pods.get(uid)
            if pod is None or uid in self._asleep or not self._is_plain(pod) or _is_deaf(pod):
                continue
            promised = list(_weighty(pod, belief.promised))
            nominated = list(_weighty(pod, belief.nominated))
            for name in belief.history.nodes:
                if _passes(pod, name, belief.history, promised) and _passes(
                    pod, name, belief.announced, nominated
                ):
                    self._asleep.add(uid)
                    self._breach("attempt-wakeup", f"{name_of(pod)} sleeps, and fits {name}")
                    break


def _is_deaf(pod: Obj) -> bool:
    """Return whether a pod selects namespaces by labels: hints do not read these, as upstream."""
    affinity = (pod["spec"].get("affinity") or {}).values()
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return any("namespaceSelector" in term for each in affinity for term in each.get(required, ()))


def _on(pod: Obj, node: str) -> Obj:
    """Return a pod as if it were on a node."""
    return {**pod, "spec": {**pod["spec"], "nodeName": node}}


def _staying(pod: Obj) -> Obj:
    """Return a pod as if nobody had deleted it."""
    if not is_leaving(pod):
        return pod
    meta = {key: value for key, value in pod["metadata"].items() if key != "deletionTimestamp"}
    return {**pod, "metadata": meta}


def _leaving_soon(history: History, uids: Iterable[str]) -> History:
    """Return a history in which pods have been deleted: a dry run does not count their labels."""
    soon = copy.copy(history)
    deleted = {"deletionTimestamp": "1970-01-01T00:00:00Z"}
    soon.pods = dict(history.pods)
    for uid in uids:
        pod = history.pods[uid]
        soon.pods[uid] = {**pod, "metadata": {**deleted, **pod["metadata"]}}
    return soon


def _has_volumes(pod: Obj) -> bool:
    return bool(pod["spec"].get("volumes"))


def _of_gang(pod: Obj) -> bool:
    return GROUP_LABEL in pod["metadata"].get("labels", {})


def _nominated_node(pod: Obj) -> str:
    """Return the node that the status of a pod without a node names."""
    return "" if node_of(pod) else pod.get("status", {}).get("nominatedNodeName", "")


def _awaits(pod: Obj, history: History) -> bool:
    """Return whether a less important pod leaves the node that the status of a pod names."""
    node = _nominated_node(pod)
    there = history.on_node(node) if node else ()
    return any(is_leaving(each) and priority_of(each) < priority_of(pod) for each in there)


def _weighty(pod: Obj, promised: Iterable[Obj]) -> Iterator[Obj]:
    """Yield the pods whose promises a pod has to heed."""
    for each in promised:
        other = each["metadata"]["uid"] != pod["metadata"]["uid"]
        if other and priority_of(each) >= priority_of(pod):
            yield each


def _passes(
    pod: Obj, node: str, history: History, promised: list[Obj], gone: Iterable[str] = ()
) -> bool:
    """Return whether a node takes a pod, with the promised pods on their nodes and without.

    Promises count in a whole domain, other than in kube-scheduler: see the deviations.
    """
    gone = list(gone)
    if promised:
        more = copy.copy(history)
        more.pods = more.pods | {each["metadata"]["uid"]: each for each in promised}
        if not _fits(pod, node, more, gone):
            return False
    return _fits(pod, node, history, gone)


def _fits(pod: Obj, node: str, history: History, gone: Iterable[str] = ()) -> bool:
    case = placed(pod, node, history, without=gone)
    return not any(True for rule in _RULES for _ in rule.broken(case))


def _wrong_victims(
    pod: Obj, decision: Decision, candidates: Mapping[str, Candidate]
) -> Iterator[str]:
    nomination = decision.nomination
    chosen = "" if nomination is None else nomination.node_name
    if chosen not in candidates:
        if chosen or candidates:
            names = ", ".join(sorted(candidates)) or "no node"
            yield f"{name_of(pod)} is promised {chosen or 'no node'}; evictions help on {names}"
        return
    victims = sorted(each.full_name for each in decision.victims)
    if victims != sorted(candidates[chosen].victims) and candidates[chosen].is_certain:
        yield (
            f"{name_of(pod)} evicts {', '.join(victims)} from {chosen}; enough are "
            f"{', '.join(sorted(candidates[chosen].victims))}"
        )
    elif all(each.is_certain for each in candidates.values()) and chosen not in best_nodes(
        candidates
    ):
        best = ", ".join(best_nodes(candidates))
        yield f"{name_of(pod)} evicts on {chosen}; less is lost on {best}"
