"""The configuration beside the real scheduler: each binding is decided about on the state before.

All pods are where they really are. Nothing is assumed: after a comparison the real binding counts.
A difference is kept open for a moment, since a binding that is seen later may have been decided
about first (`moments`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import msgspec

from moorage.api.pod import Pod, volume_claims
from moorage.base.clock import NS_PER_SECOND, rfc3339_micro
from moorage.engine.decision import Decision
from moorage.engine.decision import Outcome as Decided
from moorage.framework.runner import run_pre_enqueue
from moorage.shadow.comparison import Comparison, Outcome
from moorage.shadow.deciding import Decider, Preference, Why
from moorage.shadow.moments import MOMENT_SECONDS, Moments, Turn
from moorage.snapshot.pod_info import PodInfo
from moorage.state.lifecycle import PodState
from moorage.what_if.world import Filled, World

OnComparison = Callable[[Comparison], None]

_OPEN_NS: Final = round(MOMENT_SECONDS * NS_PER_SECOND)
# Tries for one open difference: a guess; most differences have no later binding that matters.
_TRIES: Final = 8
_OVERTAKEN: Final = "a pod that was bound a moment later may have been decided about first"


class _Open(msgspec.Struct):
    """A difference that may still be explained.

    Parameters
    ----------
    found
        The comparison as it stands.
    pod, turn
        The pod as it was before its binding, and when it was popped.
    at_ns
        When its binding was seen.
    tries
        How often it was tried again.
    """

    found: Comparison
    pod: PodInfo
    turn: Turn
    at_ns: int
    tries: int = 0


class Beside:
    """Compares each decision of the real scheduler with that of the configuration.

    Parameters
    ----------
    world
        The configuration and its plugins; its objects are those of the first lists.
    report
        Takes every comparison, once.

    Attributes
    ----------
    filled
        The deciding half over the cluster as it is.
    decider
        Decides about one pod.
    moments
        The changes of the last moment.
    """

    def __init__(self, world: World, report: OnComparison) -> None:
        preference = Preference()
        self.filled: Filled = world.fill(tie_break=preference)
        core = self.filled.core
        self.decider = Decider(core.cycles, core.snapshot, preference)
        self.moments = Moments(core.snapshot)
        self._report = report
        self._open: deque[_Open] = deque()
        # Claims -> when they changed; pods without a node -> when they appeared, wall-clock ns, and
        # their rank.
        self._claims: dict[tuple[str, str, str], int] = {}
        self._since: dict[str, int] = {}
        self._order: dict[str, int] = {}
        self._appeared = 0

    @property
    def now_ns(self) -> int:
        """Wall-clock time, nanoseconds since the Unix epoch."""
        return self.filled.clock.now_ns()

    def serves(self, pod: Pod) -> bool:
        """Whether the configuration has a profile for a pod."""
        return pod.spec.scheduler_name in self.filled.core.profiles

    # --- what is seen ---------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin anew: what the first lists showed is no change."""
        self.moments = Moments(self.filled.core.snapshot)
        self._claims.clear()

    def appeared(self, pod: Pod) -> None:
        """Note that a pod without a node appeared."""
        self._since[pod.uid] = self.now_ns
        self._appeared += 1
        self._order[pod.uid] = self._appeared

    def gone(self, pod: Pod) -> None:
        """Forget a pod without a node."""
        self._since.pop(pod.uid, None)
        self._order.pop(pod.uid, None)

    def claim_changed(self, kind: str, namespace: str, name: str) -> None:
        """Note that a volume claim or a device claim changed."""
        self._claims[kind, namespace, name] = self.now_ns

    def claim_gone(self, kind: str, namespace: str, name: str) -> None:
        """Forget a claim."""
        self._claims.pop((kind, namespace, name), None)

    def node_changed(self, name: str) -> None:
        """Note that a node was added, or changed in what decisions depend on."""
        self.moments.node_changed(name, self.now_ns)
        for case in self._open:
            if name in {case.found.real_node, case.found.shadow_node}:
                self._excuse(case, "a node in question changed a moment later")

    def bound(self, pod: PodInfo, node: str) -> None:
        """Compare the binding of a pod, before the binding is taken in.

        Parameters
        ----------
        pod
            The pod as it was without a node.
        node
            The node that it was bound to.
        """
        turn = self._turn(pod.pod)
        self._try_open(pod, node, turn)
        if self.serves(pod.pod):
            found = self._compared(pod, node, turn)
            if found.differs:
                self._open.append(_Open(found, pod, turn, self.now_ns))
            else:
                self._report(found)
        self.gone(pod.pod)
        self.moments.pod_came(pod, node, turn, self.now_ns)

    def unseen(self, pod: Pod) -> None:
        """Count a pod that had a node when it was first seen."""
        why = "it had a node when it was first seen"
        self._report(self._not_comparable(pod, pod.spec.node_name, why))

    def since_ns(self, pod: Pod) -> int:
        """Return when a pod without a node was first seen, wall-clock nanoseconds."""
        return self._since.get(pod.uid, self.now_ns)

    def close(self, *, every: bool = False) -> None:
        """Report the differences that nothing has explained within a moment.

        Parameters
        ----------
        every
            Whether younger differences are reported as well, since nothing more is watched.
        """
        while self._open and (every or self.now_ns - self._open[0].at_ns >= _OPEN_NS):
            self._report(self._open.popleft().found)

    # --- how they compare -----------------------------------------------------------------------

    def _compared(self, pod: PodInfo, node: str, turn: Turn) -> Comparison:
        obstacle = self._obstacle(pod.pod, node)
        if obstacle:
            return self._not_comparable(pod.pod, node, obstacle)
        held = self.held(pod.pod)
        if held is not None:
            return self._comparison(pod.pod, Outcome.NOT_PLACED, node, why=held)
        decision = self.decider.decide(pod, node)
        if isinstance(decision, str):
            return self._comparison(pod.pod, Outcome.NOT_PLACED, node, why=Why(reason=decision))
        if decision.node_name == node:
            outcome = Outcome.SAME if decision.ties <= 1 else Outcome.EQUAL
            return self._comparison(pod.pod, outcome, node, shadow=node)
        if self.decider.takes_from_elsewhere(pod, node):
            return self._comparison(pod.pod, Outcome.EQUAL, node, shadow=decision.node_name)
        return self._different(pod, node, decision, turn)

    def _different(self, pod: PodInfo, node: str, decision: Decision, turn: Turn) -> Comparison:
        shadow, now_ns = decision.node_name, self.now_ns
        changed = self.moments.changed_node({node, shadow}, now_ns)
        if changed:
            return self._not_comparable(pod.pod, node, "a node in question changed a moment before")
        core = self.filled.core
        if core.snapshot.groups.key_of(pod.pod) is not None:
            why = "it is a member of a group, which is decided about as a whole"
            return self._not_comparable(pod.pod, node, why)
        if self._nominated_there(pod, {node, shadow}):
            why = "another pod is nominated for a node in question, and nominations are seen late"
            return self._not_comparable(pod.pod, node, why)
        agrees = partial(self.decider.takes, pod, node)
        since_ns = self._since.get(pod.uid, 0)
        if self.moments.earlier(agrees, turn, since_ns=since_ns, now_ns=now_ns):
            return self._not_comparable(pod.pod, node, "both agree on the state of a moment before")
        outcome = Outcome.OTHER_NODE if decision.outcome is Decided.BIND else Outcome.NOT_PLACED
        told = self.decider.why_not(pod, node, decision)
        return self._comparison(pod.pod, outcome, node, shadow=shadow, why=told)

    def _nominated_there(self, pod: PodInfo, nodes: set[str]) -> bool:
        """Whether another pod is nominated for one of the nodes."""
        nominator = self.filled.core.queue.nominator
        return any(
            each.uid != pod.uid for name in nodes if name for each in nominator.for_node(name)
        )

    def _obstacle(self, pod: Pod, node: str) -> str:
        """Return why the state that the real scheduler decided on is not known; "" if it is."""
        if self.filled.core.snapshot.row_of(node) is None:
            return "its node was not known yet"
        for claim in _claims_of(pod):
            if self._claims.get(claim, 0) > self._since.get(pod.uid, 0):
                return f"a {claim[0]} of it was changed before the binding, maybe for its node"
        return ""

    def held(self, pod: Pod) -> Why | None:
        """Return why a PreEnqueue plugin keeps a pod out of the queue; None if none does."""
        core = self.filled.core
        if core.queue.lifecycle.state(pod.uid) is not PodState.GATED:
            return None
        status = run_pre_enqueue(core.profiles[pod.spec.scheduler_name], pod)
        if status.ok:
            return None
        told = f"{status.plugin} keeps it out of the queue: {status.message}"
        return Why(reason=told, plugin=status.plugin, rejections={status.plugin: status.reasons})

    # --- open differences -----------------------------------------------------------------------

    def _try_open(self, pod: PodInfo, node: str, turn: Turn) -> None:
        """Try whether the pod that is bound now explains an open difference."""
        known_ns = self._since.get(pod.uid)
        for case in self._open:
            found = case.found
            matters = node in {found.real_node, found.shadow_node}
            if known_ns is None or known_ns > case.at_ns or not matters or case.tries >= _TRIES:
                continue
            if case.turn.surely_before(turn):
                continue
            case.tries += 1
            agrees = partial(self.decider.takes, case.pod, found.real_node)
            if self.moments.with_pod(agrees, without=case.pod.uid, pod=pod, node=node):
                self._excuse(case, _OVERTAKEN)

    def _excuse(self, case: _Open, why: str) -> None:
        case.found = msgspec.structs.replace(
            case.found, outcome=Outcome.NOT_COMPARABLE, plugin="", reason=why, scores=()
        )
        case.tries = _TRIES

    def _turn(self, pod: Pod) -> Turn:
        """Return when a pod without a node was popped, as far as it is known."""
        tried = any(
            each.type == "PodScheduled" and each.status == "False" for each in pod.status.conditions
        )
        return Turn(self._order.get(pod.uid, 0), pod.priority, pod.spec.scheduler_name, tried)

    # --- comparisons ----------------------------------------------------------------------------

    def _not_comparable(self, pod: Pod, node: str, why: str) -> Comparison:
        return self._comparison(pod, Outcome.NOT_COMPARABLE, node, why=Why(reason=why))

    def _comparison(
        self, pod: Pod, outcome: Outcome, node: str, *, shadow: str = "", why: Why | None = None
    ) -> Comparison:
        why = Why(reason="") if why is None else why
        return Comparison(
            time=rfc3339_micro(self.now_ns),
            pod=pod.full_name,
            about="binding",
            outcome=outcome,
            real_node=node,
            shadow_node=shadow,
            plugin=why.plugin,
            reason=why.reason,
            scores=why.scores,
            rejections=why.rejections,
        )


def _claims_of(pod: Pod) -> Iterator[tuple[str, str, str]]:
    """Yield the claims that a pod refers to: kind, namespace, name."""
    for namespace, name in volume_claims(pod):
        yield "PersistentVolumeClaim", namespace, name
    for claim in pod.spec.resource_claims:
        if claim.resource_claim_name:
            yield "ResourceClaim", pod.namespace, claim.resource_claim_name
    for made in pod.status.resource_claim_statuses:
        if made.resource_claim_name:
            yield "ResourceClaim", pod.namespace, made.resource_claim_name
