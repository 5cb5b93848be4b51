"""The bindings of the last moments."""

from __future__ import annotations

from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND
from moorage.shadow.moments import Binding, Moments
from moorage.shadow.queue_order import Turn
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import pod_manifest


def test_a_binding_may_have_waited_for_longer_than_bindings_are_kept() -> None:
    """It waits for those before it, and longer where the program had no time."""
    pod = PodInfo(from_dict(Pod, pod_manifest("p", uid="p")))
    moments = Moments(Snapshot())
    moments.bound(Binding(pod, "n", Turn(1, 0, 0, ""), 1, at_ns=0), now_ns=60 * NS_PER_SECOND)

    assert moments.bindings_of({"p"}, Binding(pod, "n", Turn(1, 0, 0, ""), 2, at_ns=0)) == []
