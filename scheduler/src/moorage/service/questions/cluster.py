"""The pods that fill each node, and the changes since an earlier answer, from the table.

The table keeps logs of changed rows. The version in an answer is a position in these logs, so the
scheduler keeps nothing about the callers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from moorage.api.node import Node, Taint
from moorage.base.clock import Clock, rfc3339_micro
from moorage.framework.insight.held_devices import WHOLE_DEVICE, HeldDevice, with_devices
from moorage.service.core import Core
from moorage.service.questions.cluster_answers import ClusterAnswer, Devices, FilledNode, FillingPod
from moorage.service.questions.question import Parameter, Question, QuestionParameters
from moorage.service.scheduler import Scheduler
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES

# Longer numbers are none of ours.
_DIGITS_MAX: Final = 20
_TOPOLOGY: Final = "topology."
_POOLS: Final = frozenset(
    {
        "node.kubernetes.io/instance-type",
        "cloud.google.com/gke-nodepool",
        "eks.amazonaws.com/nodegroup",
        "karpenter.sh/nodepool",
        "kubernetes.azure.com/agentpool",
        "node-pool",
        "pool",
    }
)
"""Labels by which people know pools of nodes: of vendors and Karpenter, and plain words."""


def cluster_question(scheduler: Scheduler, clock: Clock) -> Question:
    """Return the question what fills each node."""
    born_ns = clock.now_ns()

    async def ask(parameters: QuestionParameters) -> ClusterAnswer:
        return ClusterFill(scheduler.core, born_ns=born_ns).cluster_answer(
            parameters.get("since", ""),
            now_ns=clock.now_ns(),
            scheduling=scheduler.schedules,
        )

    return Question(
        path="/cluster",
        summary="Every node and what fills it: its pods with their requests; or, with since, only "
        "the nodes that changed",
        answer=ClusterAnswer,
        ask=ask,
        parameters=(
            Parameter(
                name="since",
                description="The version of an earlier answer. Only the nodes that changed since "
                "then are named, or every node where the changes are no longer known.",
            ),
        ),
    )


class ClusterFill:
    """Reads what fills the nodes.

    Parameters
    ----------
    core
        The state; it is not changed.
    born_ns
        Tells this scheduler's versions from those of another one, wall-clock nanoseconds.
    """

    def __init__(self, core: Core, *, born_ns: int) -> None:
        self._snapshot = core.snapshot
        self._table = table = core.snapshot.table
        self._logs = (table.node_log, table.pod_log, table.version_log)
        self._claims = core.snapshot.claims
        self._groups = core.snapshot.groups
        self._held_devices = [
            declared.held_devices
            for profile in core.profiles.values()
            for declared in profile.capabilities.values()
            if declared.held_devices is not None
        ]
        self._born = f"{born_ns:x}"

    def cluster_answer(self, since: str, *, now_ns: int, scheduling: bool) -> ClusterAnswer:
        """Return every node, or those that changed since a version.

        Parameters
        ----------
        since
            An earlier version; "" or an unknown version asks for every node.
        now_ns
            Wall-clock time, nanoseconds.
        scheduling
            Whether this scheduler schedules.
        """
        rows = self._changed_rows(since)
        table = self._table
        return ClusterAnswer(
            time=rfc3339_micro(now_ns),
            scheduling=scheduling,
            version=self._version(),
            whole=rows is None,
            nodes={
                table.names[row]: self._node(row)
                for row in (range(len(table.names)) if rows is None else rows)
            },
        )

    def _version(self) -> str:
        table = self._table
        return ".".join((self._born, *map(str, (table.columns.structure, *self._positions()))))

    def _positions(self) -> Iterator[int]:
        yield from (log.position for log in self._logs)
        yield self._claims.shown_log.position

    def _changed_rows(self, since: str) -> Sequence[int] | None:
        """Return the rows that changed since a version; None where that is not known."""
        born, _, marks = since.partition(".")
        positions = marks.split(".")
        known = len(positions) == 2 + len(self._logs) and all(map(_is_position, positions))
        if born != self._born or not known:
            return None
        structure, *places, claims_place = map(int, positions)
        # Rows have other numbers after a change of structure, so the logs say nothing about it.
        if structure != self._table.columns.structure:
            return None
        changed: set[int] = set()
        for log, place in zip(self._logs, places, strict=True):
            rows = log.since(place)
            if rows is None:
                return None
            changed.update(rows)
        claims = self._claims.shown_log.since(claims_place)
        if claims is None:
            return None
        changed.update(row for key in claims for row in self._rows_of_users(*key))
        return sorted(changed)

    def _rows_of_users(self, namespace: str, name: str) -> Iterator[int]:
        """Yield the rows of the pods that use a claim: the claim says which devices they hold."""
        claim = self._claims.get(namespace, name)
        for user in () if claim is None else claim.status.reserved_for:
            row = self._table.row_of(self._table.node_of_pod(user.uid) or "")
            if row is not None:
                yield row

    def _node(self, row: int) -> FilledNode:
        node = self._table.nodes[row]
        return FilledNode(
            allocatable=self._allocatable(row),
            domains=_domains(node),
            unschedulable=node.spec.unschedulable,
            taints=tuple(map(_taint, node.spec.taints)),
            pods=tuple(self._pod(each, node) for each in self._snapshot.pods(row)),
        )

    def _allocatable(self, row: int) -> dict[str, int]:
        snapshot = self._snapshot
        amounts = {name: int(snapshot.allocatable(name)[row]) for name in self._table.exact_limit}
        found = {name: amount for name, amount in amounts.items() if amount}
        return {**found, "pods": int(self._table.columns.ensure("allowed_pods")[row])}

    def _pod(self, info: PodInfo, node: Node) -> FillingPod:
        group = self._groups.key_of(info.pod)
        # Plugins of several profiles know the same devices.
        known = (each for held in self._held_devices for each in held(info, node))
        devices = {(each.pool, each.device): each for each in known}.values()
        return FillingPod(
            namespace=info.namespace,
            name=info.name,
            uid=info.uid,
            priority=info.priority,
            owner=info.pod.metadata.owner_title,
            group="" if group is None else group.full_name,
            requests=_requests(info, devices, node),
            devices=_by_pool(devices),
        )


def _requests(info: PodInfo, devices: Collection[HeldDevice], node: Node) -> Mapping[str, float]:
    requests = info.part(RESOURCES).value.balanced
    if not devices:
        return requests
    return with_devices(
        requests, devices, node.status.allocatable, amount_of=lambda milli: milli / WHOLE_DEVICE
    )


def _by_pool(devices: Iterable[HeldDevice]) -> Devices:
    pools: dict[str, dict[str, int]] = {}
    for each in devices:
        pools.setdefault(each.pool, {})[each.device] = each.milli
    return pools


def _domains(node: Node) -> dict[str, str]:
    labels = node.metadata.labels
    return {
        key: value for key, value in labels.items() if key.startswith(_TOPOLOGY) or key in _POOLS
    }


def _taint(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _is_position(text: str) -> bool:
    # Python refuses to read very long numbers.
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX
