"""core/v1 Pod: containers, placement rules, volumes and status."""

# ruff: noqa: RUF012  (the codec library gives every struct its own copy of [] and {})
from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.api.claims import (
    ContainerResourceClaim,
    PodExtendedResourceClaimStatus,
    PodResourceClaim,
    PodResourceClaimStatus,
)
from moorage.api.meta import (
    ApiObject,
    ApiStruct,
    Condition,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    ObjectMeta,
    ResourceList,
)
from moorage.api.volume import (
    AWSElasticBlockStore,
    AzureDisk,
    AzureFile,
    Cinder,
    CSIVolumeSource,
    GCEPersistentDisk,
    ISCSIVolume,
    PersistentVolumeClaimSpec,
    PortworxVolume,
    RBDVolume,
    VsphereVolume,
)

MIRROR: Final = "kubernetes.io/config.mirror"
"""Annotation of a pod that shows a node's own file to the cluster."""
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
"""Annotation of a pod: of the pods of a ReplicaSet, the one of the lowest cost goes first."""

# --- containers ----------------------------------------------------------------------------------


class Resources(ApiStruct, frozen=True, kw_only=True):
    """Requests and limits of a container, or of a pod as a whole."""

    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: list[ContainerResourceClaim] = []


class ContainerPort(ApiStruct, frozen=True, kw_only=True):
    """A port of a container; ``host_port`` 0 means none is taken on the node."""

    name: str = ""
    host_port: int = 0
    container_port: int = 0
    protocol: str = ""
    host_ip: str = ""


class ContainerExitCodes(ApiStruct, frozen=True, kw_only=True):
    """Exit codes a rule is about; ``operator`` is In or NotIn."""

    operator: str = ""
    values: list[int] = []


class ContainerRestartRule(ApiStruct, frozen=True, kw_only=True):
    """The action on certain exit codes; scheduling reads only the action."""

    action: str = ""
    exit_codes: ContainerExitCodes | None = None


class SleepAction(ApiStruct, frozen=True, kw_only=True):
    """A hook that waits; seconds."""

    seconds: int = 0


class LifecycleHandler(ApiStruct, frozen=True, kw_only=True):
    """The action of a hook. Commands and calls are not read, because no container runs here."""

    sleep: SleepAction | None = None


class Lifecycle(ApiStruct, frozen=True, kw_only=True):
    """Hooks of a container; ``pre_stop`` runs before the container is told to stop."""

    pre_stop: LifecycleHandler | None = None


class Probe(ApiStruct, frozen=True, kw_only=True):
    """A probe of a container. Only its delay (seconds) is read, because no container runs here."""

    initial_delay_seconds: int = 0


class Container(ApiStruct, frozen=True, kw_only=True):
    """A regular or an init container; an init container with ``Always`` is a sidecar."""

    name: str = ""
    image: str = ""
    command: list[str] = []
    args: list[str] = []
    ports: list[ContainerPort] = []
    resources: Resources = Resources()
    restart_policy: str = ""
    restart_policy_rules: list[ContainerRestartRule] = []
    lifecycle: Lifecycle | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None

    @property
    def is_restartable_init(self) -> bool:
        """Whether this init container keeps running next to the regular containers."""
        return self.restart_policy == "Always"


# --- volumes -------------------------------------------------------------------------------------


class PersistentVolumeClaimVolume(ApiStruct, frozen=True, kw_only=True):
    """A volume that is a claim in the pod's namespace."""

    claim_name: str = ""
    read_only: bool = False


class PersistentVolumeClaimTemplate(ApiStruct, frozen=True, kw_only=True):
    """The claim made for an ephemeral volume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolume(ApiStruct, frozen=True, kw_only=True):
    """A volume whose claim, ``<pod>-<volume>``, lives and dies with the pod."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class ImageVolume(ApiStruct, frozen=True, kw_only=True):
    """An image mounted as a volume."""

    reference: str = ""
    pull_policy: str = ""


class ConfigMapVolume(ApiStruct, frozen=True, kw_only=True):
    """A volume filled from a ConfigMap."""

    name: str = ""
    optional: bool = False


class SecretVolume(ApiStruct, frozen=True, kw_only=True):
    """A volume filled from a Secret."""

    secret_name: str = ""
    optional: bool = False


class Volume(ApiStruct, frozen=True, kw_only=True):
    """A volume of a pod. Kinds of source that no rule reads are dropped in decoding."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    image: ImageVolume | None = None
    csi: CSIVolumeSource | None = None
    config_map: ConfigMapVolume | None = None
    secret: SecretVolume | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: Cinder | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None
    iscsi: ISCSIVolume | None = None
    rbd: RBDVolume | None = None


# --- placement rules -----------------------------------------------------------------------------


class PreferredSchedulingTerm(ApiStruct, frozen=True, kw_only=True):
    """A preferred term about nodes; weight 1 to 100."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(ApiStruct, frozen=True, kw_only=True):
    """Required and preferred terms about nodes; no list of preferred terms is not an empty list."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] | None = (
        None
    )


class PodAffinityTerm(ApiStruct, frozen=True, kw_only=True):
    """Pods to be near to, or away from, by topology domain.

    ``label_selector`` None matches no pod. ``namespace_selector`` None selects no namespace
    next to ``namespaces``, an empty one selects all.
    """

    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(ApiStruct, frozen=True, kw_only=True):
    """A preferred term about other pods; weight 1 to 100."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(ApiStruct, frozen=True, kw_only=True):
    """Required and preferred terms about other pods, to be near to or (anti-affinity) away from."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] = []
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] = []


class Affinity(ApiStruct, frozen=True, kw_only=True):
    """All affinities of a pod; a part that is present but empty differs from an absent one."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(ApiStruct, frozen=True, kw_only=True):
    """A taint the pod accepts; hashable. Semantics in `moorage.api.taints`."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class TopologySpreadConstraint(ApiStruct, frozen=True, kw_only=True):
    """A bound on the uneven spread of matching pods over the domains of a topology key."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] = []


class PodSchedulingGate(ApiStruct, frozen=True, kw_only=True):
    """A gate; the pod is not considered while any is left."""

    name: str = ""


class PodReadinessGate(ApiStruct, frozen=True, kw_only=True):
    """A condition set by another program, without which the pod is not ready."""

    condition_type: str = ""


class PodSchedulingGroup(ApiStruct, frozen=True, kw_only=True):
    """The group a pod is scheduled with."""

    pod_group_name: str = ""


# --- the pod -------------------------------------------------------------------------------------


class PodSpec(ApiStruct, frozen=True, kw_only=True):
    """Wanted state of a pod. ``priority`` None is read as 0, see `Pod.priority`."""

    containers: list[Container] = []
    init_containers: list[Container] = []
    ephemeral_containers: list[Container] | None = None  # a list in every pod would take memory
    volumes: list[Volume] = []
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    scheduling_gates: list[PodSchedulingGate] = []
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    overhead: ResourceList = {}
    resources: Resources | None = None
    host_network: bool = False
    host_users: bool | None = None
    scheduler_name: str = ""
    resource_claims: list[PodResourceClaim] = []
    scheduling_group: PodSchedulingGroup | None = None
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    service_account_name: str = ""
    restart_policy: str = ""
    readiness_gates: list[PodReadinessGate] = []

    @property
    def must_spread(self) -> bool:
        """Whether the spec has a topology spread constraint that must hold."""
        constraints = self.topology_spread_constraints
        return any(each.when_unsatisfiable == "DoNotSchedule" for each in constraints)


class ContainerStateRunning(ApiStruct, frozen=True, kw_only=True):
    """The container runs."""

    started_at: str | None = None


class ContainerStateWaiting(ApiStruct, frozen=True, kw_only=True):
    """The container has not started."""

    reason: str = ""
    message: str = ""


class ContainerStateTerminated(ApiStruct, frozen=True, kw_only=True):
    """The container has ended."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(ApiStruct, frozen=True, kw_only=True):
    """The state of a container; at most one part is set."""

    running: ContainerStateRunning | None = None
    waiting: ContainerStateWaiting | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(ApiStruct, frozen=True, kw_only=True):
    """Observed state of one container, with the resources actually in force."""

    name: str = ""
    image: str = ""
    image_id: str = ""
    container_id: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    resources: Resources | None = None
    allocated_resources: ResourceList = {}


class PodStatus(ApiStruct, frozen=True, kw_only=True):
    """Observed state of a pod."""

    phase: str = ""
    conditions: list[Condition] = []
    reason: str = ""
    message: str = ""
    nominated_node_name: str = ""
    host_ip: str = ""
    pod_ip: str = ""
    start_time: str | None = None
    observed_generation: int = 0
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    ephemeral_container_statuses: list[ContainerStatus] | None = None  # as in the spec
    resources: Resources | None = None
    allocated_resources: ResourceList = {}
    resource_claim_statuses: list[PodResourceClaimStatus] = []
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    qos_class: str = ""

    @property
    def scheduling_failure(self) -> Condition | None:
        """The condition that says why the pod has no node; None where it says nothing."""
        for each in self.conditions:
            if each.type == "PodScheduled" and each.status == "False":
                return each
        return None


class Pod(ApiObject, frozen=True, kw_only=True):
    """core/v1 Pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def uid(self) -> str:
        """``metadata.uid``, the pod's identity."""
        return self.metadata.uid

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name)."""
        return (self.metadata.namespace, self.metadata.name)

    @property
    def full_name(self) -> str:
        """``namespace/name``, for messages."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def priority(self) -> int:
        """``spec.priority``, 0 when absent."""
        return self.spec.priority or 0


def volume_claims(pod: Pod) -> Iterator[tuple[str, str]]:
    """Yield (namespace, name) of each PersistentVolumeClaim behind a pod's volumes."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield pod.namespace, volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield pod.namespace, f"{pod.name}-{volume.name}"
