"""Settings of a sandbox, and answers of its server process, as data between processes."""

from __future__ import annotations

import msgspec

from moorage.sandbox.process import Pace

SANDBOX_CONTEXT = "moorage"
"""Name of the context in a sandbox's kubeconfig; whatever else is current there is not ours."""


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the server process.

    Parameters
    ----------
    listen
        Address or host name of this machine to listen on.
    names
        What else the server is known by to its clients; for its certificate.
    port
        Where to listen; 0 takes any free port.
    nodes
        Node templates to play, as ``moorage.nodeagent.templates`` makes them.
    nodes_of_new
        The nodes are for a new cluster only; one that was there before keeps the nodes it had.
    seed
        Of all its random streams.
    data
        Directory to keep the cluster in; empty for a cluster in memory.
    salvage
        Go on with what can be read of damaged data.
    rbac
        Users may do what roles allow.
    audit_log
        File to write every call to; empty for none.
    pace
        How fast time runs.
    """

    listen: str = "127.0.0.1"
    names: list[str] = []
    port: int = 0
    nodes: list[dict[str, object]] = []
    nodes_of_new: bool = False
    seed: int = 0
    data: str = ""
    salvage: bool = False
    rbac: bool = False
    audit_log: str = ""
    pace: Pace = Pace()


class ServerReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line from the server process to its parent.

    Parameters
    ----------
    url, kubeconfig
        Set when the server listens: its address, and a kubeconfig's text.
    scheduler_kubeconfig
        The text of one for the scheduler, as the user it is in any cluster.
    restored
        The cluster was there before, in its data directory.
    nodes
        How many nodes it plays.
    ready
        Every node is registered.
    error
        Why the process ends.
    bad_input
        Whether the error is in what a person asked for.
    """

    url: str = ""
    kubeconfig: str = ""
    scheduler_kubeconfig: str = ""
    restored: bool = False
    nodes: int = 0
    ready: bool = False
    error: str = ""
    bad_input: bool = False
