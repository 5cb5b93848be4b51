"""``kubescheduler.config.k8s.io/v1`` as frozen structs; defaults are the fields' defaults.

First stop after `load` has read the text. A field whose "unset" differs from every value is None
until `defaults.with_defaults` has run. Source: kubernetes v1.36
``staging/src/k8s.io/kube-scheduler/config/v1``; departures from it are named at the field.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from moorage.api.naming import json_name
from moorage.config.extenders import Extender

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"


class LeaderElection(
    msgspec.Struct, frozen=True, kw_only=True, rename=json_name, forbid_unknown_fields=True
):
    """Settings of leader election, by which one of several replicas schedules."""

    leader_elect: bool = True
    """Whether to schedule only while holding the lease."""
    lease_duration: str = "15s"
    """Go duration; how long other replicas respect a lease that is not renewed."""
    renew_deadline: str = "10s"
    """Go duration; how long the leader tries to renew before it gives up."""
    retry_period: str = "2s"
    """Go duration between two attempts to get or renew the lease."""
    resource_lock: str = "leases"
    """Kind of the lock; there is no other."""
    resource_name: str = "kube-scheduler"
    """Name of the Lease. Replicas share it; schedulers next to each other must not."""
    resource_namespace: str = "kube-system"


class ClientConnection(
    msgspec.Struct, frozen=True, kw_only=True, rename=json_name, forbid_unknown_fields=True
):
    """Settings of the connection to the API server."""

    kubeconfig: str = ""
    """Path; empty means the service account of the pod."""
    accept_content_types: str = ""
    content_type: str = ""
    """Accepted and ignored: moorage always speaks JSON."""
    qps: float | None = None
    """Calls a second; None: no limit on the client's side (kube-scheduler: 50)."""
    burst: int | None = None
    """Calls at once above `qps`; None: 100 where `qps` is set."""


class PluginRef(
    msgspec.Struct, frozen=True, kw_only=True, rename=json_name, forbid_unknown_fields=True
):
    """A plugin named in an enabled or disabled list."""

    name: str = ""
    weight: int | None = None
    """Multiplier of the plugin's score; None and 0 mean 1."""


class PluginSet(
    msgspec.Struct, frozen=True, kw_only=True, rename=json_name, forbid_unknown_fields=True
):
    """The plugins switched on and off at one extension point."""

    enabled: list[PluginRef] = []
    disabled: list[PluginRef] = []
    """``*`` stands for every default plugin."""


class Plugins(
    msgspec.Struct, frozen=True, kw_only=True, rename=json_name, forbid_unknown_fields=True
):
    """The lists of a profile, by extension point."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()
    placement_feasible: PluginSet | None = None
    """Of 1.37; None where it is left out."""
    pod_group_post_filter: PluginSet | None = None
    """Of 1.37; None where it is left out."""
    multi_point: PluginSet = PluginSet()
    """Enables a plugin at every point it implements."""


class PluginConfig(
    msgspec.Struct, frozen=True, kw_only=True, rename=json_name, forbid_unknown_fields=True
):
    """Arguments of one plugin."""

    name: str = ""
    args: Any = None
    """The struct of `plugin_args` once loaded; plain values for plugins defined elsewhere."""


class Profile(
    msgspec.Struct, frozen=True, kw_only=True, rename=json_name, forbid_unknown_fields=True
):
    """A set of plugins serving the pods with one ``schedulerName``."""

    scheduler_name: str = ""
    percentage_of_nodes_to_score: int | None = None
    """Overrides the global value when set, 0 included."""
    percentage_of_placements_to_score: int | None = None
    """Of 1.37. Overrides the global value when set, 0 included."""
    plugins: Plugins = Plugins()
    plugin_config: list[PluginConfig] = []


class KubeSchedulerConfiguration(
    msgspec.Struct, frozen=True, kw_only=True, rename=json_name, forbid_unknown_fields=True
):
    """The whole file."""

    api_version: str = API_VERSION
    kind: str = KIND
    parallelism: int = 16
    """Accepted for compatibility: decisions are made on one thread over whole columns."""
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool | None = None
    """None: as `enable_profiling`."""
    percentage_of_nodes_to_score: int | None = None
    """None: every node is scored (kube-scheduler: as 0). 0: an adaptive part of the nodes."""
    percentage_of_placements_to_score: int | None = None
    """Of 1.37: how many of the placements of a pod group are tried. None: all of them (1.37: as 0).
    0: an adaptive part of them."""
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    profiles: list[Profile] = []
    extenders: list[Extender] = []
    delay_cache_until_active: bool = False
    """With leader election: watch only once leading. Saves memory and calls of replicas that wait,
    and makes taking over slower."""
