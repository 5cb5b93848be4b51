"""Names of the controllers, by which a user leaves some of them out.

They are the names that kube-controller-manager's ``--controllers`` takes, where it has the
controller (kubernetes v1.36 cmd/kube-controller-manager/names/controller_names.go). The last two
are of scheduler-plugins' own controller.
"""

from __future__ import annotations

from typing import Final

DEPLOYMENTS: Final = "deployment-controller"
REPLICA_SETS: Final = "replicaset-controller"
REPLICATION_CONTROLLERS: Final = "replicationcontroller-controller"
JOBS: Final = "job-controller"
CRON_JOBS: Final = "cronjob-controller"
STATEFUL_SETS: Final = "statefulset-controller"
DAEMON_SETS: Final = "daemonset-controller"
POD_AUTOSCALERS: Final = "horizontal-pod-autoscaler-controller"
ENDPOINTS: Final = "endpoints-controller"
"""Endpoints and their slices: one controller writes both here."""
ENDPOINTS_MIRROR: Final = "endpointslice-mirroring-controller"
RESOURCE_CLAIMS: Final = "resourceclaim-controller"
NODE_LIFECYCLE: Final = "node-lifecycle-controller"
TAINT_EVICTION: Final = "taint-eviction-controller"
POD_COLLECTOR: Final = "pod-garbage-collector-controller"
SERVICE_ACCOUNTS: Final = "serviceaccount-controller"
ACCOUNT_TOKENS: Final = "serviceaccount-token-controller"
ROOT_CERTIFICATES: Final = "root-ca-certificate-publisher-controller"
GARBAGE: Final = "garbage-collector-controller"
DISRUPTION: Final = "disruption-controller"
VOLUMES: Final = "persistentvolume-binder-controller"
"""All of volumes and claims: they are bound, made, enlarged, protected and removed by one loop."""
POD_GROUPS: Final = "podgroup-controller"
ELASTIC_QUOTAS: Final = "elasticquota-controller"

NAMES: Final = (
    DEPLOYMENTS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    JOBS,
    CRON_JOBS,
    STATEFUL_SETS,
    DAEMON_SETS,
    POD_AUTOSCALERS,
    ENDPOINTS,
    ENDPOINTS_MIRROR,
    RESOURCE_CLAIMS,
    NODE_LIFECYCLE,
    TAINT_EVICTION,
    POD_COLLECTOR,
    SERVICE_ACCOUNTS,
    ACCOUNT_TOKENS,
    ROOT_CERTIFICATES,
    GARBAGE,
    DISRUPTION,
    VOLUMES,
    POD_GROUPS,
    ELASTIC_QUOTAS,
)
"""Every controller."""
