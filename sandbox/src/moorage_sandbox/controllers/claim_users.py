"""The pods on nodes that use each claim, and the claims that the last such pod has left.

A claim that is being deleted stays until no pod uses it. Rules: kubernetes v1.36
pkg/controller/volume/pvcprotection: a pod without a node does not count, because the scheduler
and the kubelet refuse a pod whose claim is being deleted.
"""

from __future__ import annotations

from collections.abc import Iterator

from moorage.api.pod import Pod, volume_claims
from moorage.client.objects import Key
from moorage.controllers.views import View
from moorage.workloads.objects import ViewedPod


class VolumeClaimUsers:
    """The claims in use, kept current from the view of pods.

    Parameters
    ----------
    pods
        Shows the pods.

    Attributes
    ----------
    used
        Claim -> the pods on nodes that use it.
    """

    def __init__(self, pods: View[ViewedPod]) -> None:
        self.used: dict[Key, set[Key]] = {}
        self._left: dict[Key, None] = {}
        pods.tell(self._pod_changed)

    def take_left(self) -> dict[Key, None]:
        """Return the claims that lost their last pod since the last call."""
        left, self._left = self._left, {}
        return left

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        before = set() if old is None else set(claims_in_use(old))
        after = set() if new is None else set(claims_in_use(new))
        pod = new or old
        assert pod is not None, "a view tells of something"
        for key in sorted(after - before):
            self.used.setdefault(key, set()).add(pod.key)
        for key in sorted(before - after):
            users = self.used[key]
            users.discard(pod.key)
            if not users:
                del self.used[key]
                self._left[key] = None


def claims_in_use(pod: Pod) -> Iterator[Key]:
    """Return the claims that a pod uses on its node; none of a pod without a node."""
    return volume_claims(pod) if pod.spec.node_name else iter(())
