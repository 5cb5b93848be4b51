"""The decision of one attempt, for the service to carry out."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import msgspec

from moorage.api.pod import Pod
from moorage.base.no_names import NO_NAMES
from moorage.engine.answers import Rejection
from moorage.engine.attempt import Attempt
from moorage.engine.notes.attempt_note import AttemptNote
from moorage.framework.cycle_state import CycleState
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.status import Status, unschedulable
from moorage.snapshot.pod_info import PodInfo


class Outcome(Enum):
    """The outcome of an attempt."""

    BIND = "bind"
    """A node was chosen: assume the pod there and go on to Reserve."""
    REJECT = "reject"
    """No node takes the pod: the pod waits for an event that its rejectors registered."""
    ERROR = "error"
    """Something broke: the pod is retried after backoff."""


class Nomination(msgspec.Struct, frozen=True):
    """A change of ``status.nominatedNodeName``: set it to a node, or clear it with "".

    Parameters
    ----------
    node_name
        The node.
    victims
        The uids of the pods that are evicted for the pod there.
    """

    node_name: str = ""
    victims: frozenset[str] = NO_NAMES


CLEAR_NOMINATION = Nomination()


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one attempt for one pod.

    Parameters
    ----------
    outcome
        How the attempt ended.
    pod
        The pod decided about.
    state
        The attempt's scratch, needed by Reserve and the binding cycle.
    status
        Success, or why not; `Status.message` is the text for people.
    node_name
        The chosen node; "" unless the outcome is BIND.
    total_score
        Weighted sum of the chosen node; None when one node was feasible and nothing was scored.
    feasible
        Number of feasible nodes.
    evaluated
        Number of nodes filtered.
    ties
        Number of nodes with the greatest total, the chosen one among them.
    diagnosis
        Why no node took the pod; None unless the outcome is REJECT by the plugins.
    nomination
        Change to the pod's nomination; None leaves it alone.
    victims
        Pods to evict from the nominated node, most important first.
    note
        The findings of the attempt for its record; None where nothing is recorded, or found.
    """

    outcome: Outcome
    pod: PodInfo
    state: CycleState
    status: Status
    node_name: str = ""
    total_score: int | None = None
    feasible: int = 0
    evaluated: int = 0
    ties: int = 0
    diagnosis: Diagnosis | None = None
    nomination: Nomination | None = None
    victims: tuple[Pod, ...] = ()
    note: AttemptNote | None = None

    @property
    def message(self) -> str:
        """The text of the event and the condition of a failed attempt."""
        return self.status.message if self.diagnosis is None else self.diagnosis.message


def rejected(
    attempt: Attempt, rejection: Rejection, *, victims: tuple[Pod, ...], spared: str, evaluated: int
) -> Decision:
    """Return the decision of an attempt for which no node was found.

    Parameters
    ----------
    attempt, rejection
        The attempt, and the reasons.
    victims
        The pods to evict: the victims that PostFilter proposed, and the rest of their gangs.
    spared
        Why the pods that PostFilter proposed are not evicted after all; "" where they are evicted.
    evaluated
        Number of nodes filtered.
    """
    diagnosis, after = rejection
    nomination: Nomination | None = CLEAR_NOMINATION
    if after is not None:
        result = after.result
        proposed, rejectors = None, NO_NAMES
        if result is not None:
            proposed, rejectors = result.nominated_node, result.rejectors
        diagnosis = diagnosis.with_post_filter(spared or after.message, rejectors)
        if proposed is not None:
            nomination = Nomination("" if spared else proposed, uids_of(victims))
        else:
            nomination = None
    return Decision(
        outcome=Outcome.REJECT,
        pod=attempt.pod,
        state=attempt.state,
        status=unschedulable(diagnosis.message),
        evaluated=evaluated,
        diagnosis=diagnosis,
        nomination=nomination,
        victims=victims,
    )


def uids_of(pods: Iterable[Pod]) -> frozenset[str]:
    """Return the uids of pods."""
    return frozenset([pod.metadata.uid for pod in pods])


def failed(attempt: Attempt, status: Status) -> Decision:
    """Return the decision of an attempt that ended with an error before the search was complete."""
    outcome = Outcome.REJECT if status.rejected else Outcome.ERROR
    return Decision(
        outcome=outcome,
        pod=attempt.pod,
        state=attempt.state,
        status=status,
        nomination=CLEAR_NOMINATION,
    )
