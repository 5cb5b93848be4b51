"""Suggestions that need the user of a claim to leave: of a claim for one pod, or of devices.

The user may be on any node. It is taken off on trial, its devices are given back, and every node is
asked about. A controller gives the devices of a deleted pod back in a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from heapq import nsmallest
from typing import Final

from moorage.api.devices import ResourceClaim
from moorage.explain.answer import Suggestion
from moorage.explain.causes import Reach
from moorage.explain.devices import released_devices, rows_near
from moorage.explain.suggestions.budgets import eviction_text, is_protected
from moorage.explain.suggestions.leaving import delete_command, have_one_controller
from moorage.explain.suggestions.ranked import AGAINST_BUDGET, EVICT, WAIT, RankedSuggestion
from moorage.explain.trying import Trying
from moorage.explain.volumes import users_of_claims
from moorage.framework.subjects import Subject
from moorage.snapshot.pod_info import PodInfo

_TRIALS_MOST: Final = 8


def users_of_data(trying: Trying) -> Iterator[RankedSuggestion]:
    """Yield the pod that has a claim of the pod which only one pod may use."""
    if not trying.inquiry.rejects_about(Subject.VOLUME_USE).any():
        return
    for user in users_of_claims(trying.inquiry.snapshot, trying.inquiry.attempt.pod)[:1]:
        yield from _tried(trying, user, (), has="its claim")


def users_of_devices(trying: Trying) -> Iterator[RankedSuggestion]:
    """Yield the least important pod without whose devices the pod gets its own."""
    if (
        not trying.inquiry.rejects_about(Subject.DEVICES).any()
        or trying.causes.reach is not Reach.PODS
    ):
        return
    snapshot = trying.inquiry.snapshot
    users = nsmallest(
        _TRIALS_MOST,
        _alone(trying),
        key=lambda each: (
            is_protected(snapshot, each[0].pod),
            each[0].priority,
            each[0].key,
        ),
    )
    for user, claims in users:
        found = list(_tried(trying, user, claims, has="such devices"))
        if found:
            yield found[0]
            return


def _alone(trying: Trying) -> Iterator[tuple[PodInfo, tuple[ResourceClaim, ...]]]:
    """Yield the pods that alone have some claims with devices, with these claims."""
    table, snapshot = trying.inquiry.snapshot.table, trying.inquiry.snapshot
    by_user: dict[str, list[ResourceClaim]] = {}
    for claim in snapshot.listers.resource_claims.all():
        users = claim.status.reserved_for
        if claim.status.allocation is not None and len(users) == 1:
            by_user.setdefault(users[0].uid, []).append(claim)
    for uid, claims in by_user.items():
        node_name = table.node_of_pod(uid)
        if node_name is not None and table.has_node(node_name):
            pod = table.pod_info(uid)
            assert pod is not None, "it is counted on a node"
            yield pod, tuple(claims)


def _tried(
    trying: Trying, user: PodInfo, claims: tuple[ResourceClaim, ...], *, has: str
) -> Iterator[RankedSuggestion]:
    """Yield the user's leaving, if some node takes the pod then."""
    if have_one_controller(user.pod, trying.pod):
        return
    snapshot = trying.inquiry.snapshot
    node_name = snapshot.table.node_of_pod(user.uid)
    near = rows_near(snapshot, claims) if claims else None
    with ExitStack() as undone:
        undone.enter_context(released_devices(snapshot, claims))
        undone.enter_context(snapshot.trial()).remove_pod(user.uid)
        rows = trying.rows_of(trying.pod, near)
        if not len(rows):
            return
        name = trying.first_name(rows)
    text, allowed = eviction_text(snapshot, user.pod, f"from {node_name}, which has {has}")
    kind, size = "evict", EVICT if allowed else AGAINST_BUDGET
    if user.pod.metadata.deletion_timestamp:
        kind, size = "wait", WAIT
        text = f"wait for pod {user.key}, which has {has}, to leave {node_name}: it is terminating"
    suggestion = Suggestion(
        kind=kind,
        text=text,
        nodes=len(rows),
        node=name,
        delete=user.key,
        command=delete_command(user) if kind == "evict" else "",
    )
    yield RankedSuggestion(size, suggestion)
