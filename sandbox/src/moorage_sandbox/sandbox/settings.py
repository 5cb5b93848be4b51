"""Settings and reports of the processes of a sandbox, as data between processes."""

from __future__ import annotations

from pathlib import Path

import msgspec

from moorage.base.process import Pace
from moorage.config.emulation import DEFAULT_VERSION

SANDBOX_CONTEXT = "moorage"
"""Name of the context in a sandbox's kubeconfig; other contexts are not the sandbox's."""


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the server process.

    Parameters
    ----------
    listen
        Address or host name of this machine to listen on.
    names
        Further names and addresses of the server, for its certificate.
    port
        Port to listen on; 0 takes any free port.
    nodes
        Node templates to play, as ``moorage.nodeshapes.templates`` makes them.
    nodes_of_new
        The nodes are for a new cluster only; a stored cluster keeps its own nodes.
    seed
        Seed of all its random streams.
    data
        Directory to keep the cluster in; empty for a cluster in memory.
    salvage
        Continue with the readable part of damaged data.
    rbac
        Users may only make the calls that roles allow.
    webhooks
        HOST:PORT of the program that stands for the Service NAMESPACE/NAME.
    no_controllers
        Names of the controllers that another program plays, of `moorage_sandbox.controllers.names`.
    audit_log
        File to write every call to; empty for none.
    version
        The version of Kubernetes that the server plays: 1.36 or 1.37.
    custom_kinds
        Plural names of the kinds of scheduler-plugins that the cluster has.
    pace
        Speed and start of the cluster's time.
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
    webhooks: dict[str, str] = {}
    no_controllers: list[str] = []
    audit_log: str = ""
    version: str = DEFAULT_VERSION
    custom_kinds: list[str] = []
    pace: Pace = Pace()


class AutoscalerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of ``moorage scale auto``, as a process of a sandbox, too.

    Parameters
    ----------
    kubeconfig, context
        The cluster.
    bounds, idle, shapes
        Least and most nodes; when an empty node is removed; the shapes of new nodes.
    config, plugins, groups
        The scheduler's configuration, whose Filters say whether a pod fits.
    seed
        Seed of all random choices; None draws a seed.
    pace
        Speed and start of the cluster's time.
    """

    kubeconfig: str
    context: str = ""
    bounds: str
    idle: str
    shapes: tuple[str, ...] = ()
    config: Path | None = None
    plugins: tuple[str, ...] = ()
    groups: bool = False
    seed: int | None = None
    pace: Pace = Pace()


class ChildReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line from a process of the sandbox to its parent.

    Parameters
    ----------
    error
        Why the process ends.
    bad_input
        Whether the error is in the user's input.
    """

    error: str = ""
    bad_input: bool = False


class SchedulerReport(ChildReport, frozen=True, kw_only=True, omit_defaults=True):
    """One line from the scheduler's process.

    Parameters
    ----------
    ready
        Pods are being scheduled.
    serving
        Set when metrics and health checks are served: their address.
    page
        Set when the page is served, and whenever a login link was used: the next link.
    """

    ready: bool = False
    serving: str = ""
    page: str = ""


class ServerReport(ChildReport, frozen=True, kw_only=True, omit_defaults=True):
    """One line from the server process.

    Parameters
    ----------
    url, kubeconfig
        Set when the server listens: its address, and a kubeconfig's text.
    scheduler_kubeconfig
        Text of a kubeconfig for the scheduler's usual user.
    restored
        The cluster was loaded from its data directory.
    nodes
        Number of nodes the process plays.
    ready
        Every node is registered.
    """

    url: str = ""
    kubeconfig: str = ""
    scheduler_kubeconfig: str = ""
    restored: bool = False
    nodes: int = 0
    ready: bool = False
