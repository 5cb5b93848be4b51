"""Lets pods and groups try again that wait for their victims to leave, where that may help now.

A cluster that changes calls `node_changed`; `attempts.flushes` calls `release_groups` as time
passes.
"""

from __future__ import annotations

from moorage.service.core import Core
from moorage.snapshot.pod_groups import GroupKey
from moorage.state.lifecycle import PodState


def release_groups(core: Core, *, changed: str = "", new_domain: bool = False) -> None:
    """Try the groups that need not wait for victims any longer; the first of them comes first.

    Also at once where what a group decided may not hold any longer. Other pods would still spare
    its room, and evict elsewhere.

    Parameters
    ----------
    core
        The scheduler.
    changed
        A node that has changed, and may be a place of groups; empty for none.
    new_domain
        Whether a node has come, or has new labels: members that must be spread may be excluded.
    """
    if not core.evictions.groups_wait:
        return
    snapshot = core.snapshot

    def holds(group: GroupKey, places: tuple[str, ...]) -> bool:
        if changed in places:
            return False
        waiting = snapshot.groups.members(group).waiting_pods()
        return not (new_domain and any(pod.spec.must_spread for pod in waiting))

    state = core.queue.lifecycle.state
    for group, woken in core.evictions.release_groups(holds).items():
        waiting = snapshot.groups.members(group).waiting_pods()
        if woken:  # the others were tried since the victims left, and wait for something else
            waiting = [pod for pod in waiting if state(pod.uid) is PodState.GATED]
        core.queue.activate(waiting)


def node_changed(core: Core, name: str, new_domain: bool) -> None:
    """Try the pods again that wait for their victims on a node that has changed, or is gone.

    The node may not suit them any more, and no plugin that rejected them may have registered the
    change: they would wait until their victims have left.
    """
    release_groups(core, changed=name, new_domain=new_domain)
    core.queue.activate(core.queue.nominator.for_node(name))
