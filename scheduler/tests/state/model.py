"""What the model of `machine` is made of: one pod, its events, and the plugins of its world."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.pod import Pod
from moorage.state.contracts import Hint, RegisteredHint
from scheduler.tests.state.build import (
    NODE_ADD,
    NODE_LABEL,
    NODE_TAINT,
    POD_DELETE,
    PVC_ADD,
    SECOND,
    hint,
    pod,
)

NAMES = [f"p{n}" for n in range(6)]
PLUGINS = ["Fit", "Label", "Claim", "Own"]
EVENTS = [NODE_ADD, NODE_LABEL, NODE_TAINT, POD_DELETE, PVC_ADD]
CURED_BY: dict[ClusterEvent, str] = {NODE_ADD: "Fit", PVC_ADD: "Claim", POD_DELETE: "Gate"}
OWN, SKIP, AFTER, NOW = -1, 0, 1, 2
PLACES = ["active", "backoff", "unschedulable", "gated", "in-flight", "assumed", "bound"]
names = st.sampled_from(NAMES)
picks = st.integers(0, len(NAMES) - 1)


def own_label(waiting: Pod, old: object, new: object) -> Hint:
    same = isinstance(new, Pod) and new.uid == waiting.uid
    return Hint.QUEUE if same else Hint.SKIP


HINTS = [
    hint("Fit", NODE_ADD),
    hint("Label", NODE_LABEL, Hint.SKIP),
    hint("Claim", PVC_ADD),
    hint("Gate", POD_DELETE),
    RegisteredHint(
        "Own",
        ClusterEvent(Resource.POD, Action.UPDATE_POD_LABEL),
        own_label,
        replicas_agree=True,
    ),
]


@dataclass
class Model:
    """One pod, as anybody would write it down."""

    name: str
    place: str
    since_ns: int
    priority: int = 0
    labels: int = 0
    attempts: int = 0
    rejections: int = 0
    errors: int = 0
    rejected: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    in_flight: bool = False
    deleted: bool = False
    node: str = ""
    meanwhile: list[int | ClusterEvent] = field(default_factory=list)

    def pod(self) -> Pod:
        return pod(
            self.name,
            uid=f"uid-{self.name}",
            priority=self.priority,
            labels={"n": str(self.labels)},
            node=self.node if self.place == "bound" else "",
        )

    def outcome(self, event: int | ClusterEvent) -> int:
        """What an event means to this pod; an int is the outcome itself."""
        if isinstance(event, int):
            return event
        plugin = CURED_BY.get(event)
        if plugin in self.pending:
            return NOW
        return AFTER if plugin in self.rejected else SKIP

    def ends_ns(self) -> int:
        if not self.errors and not self.rejections:
            return 0
        backoff = min(1 << ((self.errors or self.rejections) - 1), 10) * SECOND
        return (self.since_ns + backoff) // SECOND * SECOND
