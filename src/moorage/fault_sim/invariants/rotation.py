"""A rule about the nodes that are looked at: each search begins where the last one ended.

Where nothing scores nodes, a search ends with the first node that takes the pod. So of two pods
alike that are tried one after the other, the second goes to the next node that takes it. It goes to
the node of the first pod only where no other node takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from moorage.fault_sim.history import History, Obj, name_of, node_of, nominated_of
from moorage.fault_sim.invariants.seen import LONG_AGO_NS, Seen, placed

# Where one of these is asked for, the nodes may be named before the search begins.
_NAMED = ("affinity", "volumes", "resourceClaims", "schedulingGroup")


def not_in_rotation(seen: Seen, fits: Callable[[Seen], bool]) -> Iterator[str]:
    """Yield how a pod took the node of the pod before, though another node takes it.

    Parameters
    ----------
    seen
        The binding.
    fits
        Returns whether a binding breaks no rule.
    """
    history, pod = seen.history, seen.write.before
    before = history.pods.get(history.tried_after.get(seen.pod["metadata"]["uid"], ""))
    if not (seen.unscored and seen.undisturbed) or pod is None or before is None:
        return
    if node_of(before) != node_of(seen.pod) or not _alike(before, pod) or not _calm(seen, before):
        return
    for name in history.nodes:
        if name != node_of(seen.pod) and fits(placed(pod, name, history)):
            yield (
                f"{name_of(pod)} goes to {node_of(seen.pod)} as {name_of(before)} did right "
                f"before, and {name} takes it as well"
            )
            return


def _alike(one: Obj, other: Obj) -> bool:
    return _asked(one) == _asked(other) and not set(_NAMED) & set(one["spec"])


def _asked(pod: Obj) -> object:
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return spec, pod["metadata"]["namespace"], pod["metadata"].get("labels")


def _calm(seen: Seen, before: Obj) -> bool:
    """Whether both pods were tried with the same nodes, and with the room that there is now."""
    history, horizon_ns = seen.history, seen.horizon_ns
    own, last = seen.pod["metadata"]["uid"], before["metadata"]["uid"]
    first_ns = history.popped_ns.get(last, LONG_AGO_NS)
    tried_ns = history.popped_ns.get(own, LONG_AGO_NS)
    changed_ns = max(history.node_changed_ns.values(), default=LONG_AGO_NS)
    nominated = {own, last} & history.nominated_ns.keys()
    return (
        changed_ns + horizon_ns < first_ns <= tried_ns
        and seen.settled(history.pod_gone_ns)
        and not nominated
        and not any(map(nominated_of, history.pods.values()))
        and not _under_way(history, own, since_ns=tried_ns - horizon_ns)
    )


def _under_way(history: History, own: str, *, since_ns: int) -> bool:
    """Whether a pod that was tried lately has no node by the server, and may hold room by now."""
    return any(
        tried_ns > since_ns and uid != own and uid not in history.placed
        for uid, tried_ns in history.popped_ns.items()
    )
