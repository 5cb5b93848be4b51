"""A rule about the nodes that are looked at: each search begins where the last one ended.

Where nothing scores nodes, a search ends with the first node that takes the pod. So of two pods
alike that are tried one after the other, the second goes to the next node that takes it. It goes to
the node of the first pod only where no other node takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from moorage_lab.fault_sim.history import History, Obj, name_of, node_of, nominated_of
from moorage_lab.fault_sim.invariants.write_case import LONG_AGO_NS, WriteCase, placed

# Where one of these is asked for, the nodes may be named before the search begins.
_SEARCH_BEFORE = ("affinity", "volumes", "resourceClaims", "schedulingGroup")


def not_in_rotation(case: WriteCase, fits: Callable[[WriteCase], bool]) -> Iterator[str]:
    """Yield how a pod took the node of the pod before, though another node takes it.

    Parameters
    ----------
    case
        The binding.
    fits
        Returns whether a binding breaks no rule.
    """
    history, pod = case.history, case.write.before
    before = history.pods.get(history.tried_after.get(case.pod["metadata"]["uid"], ""))
    if not (case.unscored and case.undisturbed) or pod is None or before is None:
        return
    if node_of(before) != node_of(case.pod) or not _alike(before, pod) or not _calm(case, before):
        return
    for name in history.nodes:
        if name != node_of(case.pod) and fits(placed(pod, name, history)):
            yield (
                f"{name_of(pod)} goes to {node_of(case.pod)} as {name_of(before)} did right "
                f"before, and {name} takes it as well"
            )
            return


def _alike(one: Obj, other: Obj) -> bool:
    return _request_of(one) == _request_of(other) and not set(_SEARCH_BEFORE) & set(one["spec"])


def _request_of(pod: Obj) -> object:
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return spec, pod["metadata"]["namespace"], pod["metadata"].get("labels")


def _calm(case: WriteCase, before: Obj) -> bool:
    """Whether both pods were tried with the same nodes, and with the room that there is now."""
    history, horizon_ns = case.history, case.horizon_ns
    own, last = case.pod["metadata"]["uid"], before["metadata"]["uid"]
    first_ns = history.popped_ns.get(last, LONG_AGO_NS)
    tried_ns = history.popped_ns.get(own, LONG_AGO_NS)
    changed_ns = max(history.node_changed_ns.values(), default=LONG_AGO_NS)
    nominated = {own, last} & history.nominated_ns.keys()
    return (
        changed_ns + horizon_ns < first_ns <= tried_ns
        and case.settled(history.pod_gone_ns)
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
