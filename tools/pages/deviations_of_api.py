"""The rows of the table of differences about the API server, the Lease and the secure port."""

from __future__ import annotations

from typing import Final

from tools.pages.deviation import Deviation

API: Final[tuple[Deviation, ...]] = (
    Deviation(
        subject="A binding answered with success that the watch does not confirm",
        upstream="the pod stays assumed for as long as the scheduler runs",
        here="the pod is looked up after 30 s, and tried again where it is not on its node",
        why="a write may be lost behind its answer",
    ),
    Deviation(
        subject="A pod that the server says is on another node than before",
        upstream="kube-scheduler ends: its cache is corrupted",
        here="reported, and taken for a pod that was deleted and made again",
        why="no single object may end the scheduler",
    ),
    Deviation(
        subject="Two pods with one uid, or a pod without uid",
        upstream="both are taken in, and change each other's place in queue and cache",
        here="the first is taken in; the other is reported and left alone",
        why="state and writes go by the uid",
    ),
    Deviation(
        subject="`Retry-After` of more than a minute",
        upstream="obeyed, however long",
        here="a minute",
        why="a server must not keep a binding under way for years",
    ),
    Deviation(
        subject="A preemptor whose evictions failed",
        upstream="is tried again at once; the rate limit of the client slows that down",
        here="is tried again a second later",
        why="a server that refuses at once would be asked hundreds of times a second",
        back="nothing to do: without failures nothing waits",
    ),
    Deviation(
        subject="A victim that is gone, while another pod has its name",
        upstream="the other pod is deleted, if the victim was marked already",
        here="it is left alone: a deletion names the victim's uid",
        why="nobody is evicted for nothing",
    ),
    Deviation(
        subject="A failed eviction among several",
        upstream="the others still under way are cancelled",
        here="they end by themselves; the last victim is spared just the same",
        why="a call that was sent may have happened anyway",
    ),
    Deviation(
        subject="How a waiting replica takes the Lease",
        upstream="it looks every 2 to 4.4 s",
        here=(
            "it watches the Lease, takes it when it is released or over, and waits up to 0.25 s "
            "for its watch of pods to be current"
        ),
        why="a hand-over within a second, and no room that is given away twice",
    ),
    Deviation(
        subject="When the leader may write",
        upstream="until it gives up renewing",
        here=(
            "until it gives up, never beyond the lease as its record says it, judged from "
            "before the last renewal was sent and by the wall clock as well; every write is "
            "checked"
        ),
        why=(
            "a process that was stopped or suspended must not write in the name of a lease "
            "that is over"
        ),
    ),
    Deviation(
        subject="A client certificate of no trusted authority, or an expired one",
        upstream="the connection is made, and its other credentials may count",
        here="the connection ends, if client certificates are asked for at all",
        why="Python's TLS checks them while the connection begins",
    ),
    Deviation(
        subject="The ConfigMap `extension-apiserver-authentication` without authorities of proxies",
        upstream="counts as a failed lookup",
        here="there are no front proxies",
        why="a server without an aggregation layer publishes none",
    ),
    Deviation(
        subject="`/version`",
        upstream="kube-scheduler does not serve it",
        here="the version that is played",
        why="the other components serve it",
    ),
    Deviation(
        subject="`leaderElection.leaseDuration` below 1s",
        upstream="accepted; the server then refuses the Lease",
        here="refused",
        why="a Lease counts whole seconds",
    ),
    Deviation(
        subject="`parallelism`, `clientConnection.contentType`",
        upstream="workers of parallel loops; protobuf",
        here="accepted and without effect",
        why="all nodes are judged by one pass over columns; JSON only",
    ),
)
