"""The operations of a workload template, one struct for each opcode.

Field names are those of the files. A field that ends in ``_param`` holds ``$name``, the name of a
parameter of the workload, which replaces the field without that ending.

Source: kubernetes v1.36 test/integration/scheduler_perf/{operations,create,update,dra}.go; fields
and opcodes that are newer or older than v1.36 are marked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

Params: TypeAlias = dict[str, Any]


class Operation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One step of a workload.

    Parameters
    ----------
    opcode
        The kind of the step.
    """

    opcode: str


class NodeAllocatableStrategy(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Resources added to every node, and the attach limits of its CSINode.

    Parameters
    ----------
    node_allocatable
        Quantity by resource, added to ``status.allocatable``.
    csi_node_allocatable
        ``allocatable`` of the CSINode by driver.
    migrated_plugins
        In-tree volume plugins that the node's annotation calls migrated.
    """

    node_allocatable: dict[str, str] = {}
    csi_node_allocatable: dict[str, dict[str, int]] = {}
    migrated_plugins: list[str] = []


class LabelNodePrepareStrategy(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A label whose values go round over the nodes."""

    label_key: str
    label_values: list[str]


class UniqueNodeLabelStrategy(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A label with a value of its own on every node."""

    label_key: str


class CreateNodes(Operation, frozen=True, kw_only=True, rename="camel"):
    """Create nodes, by default with 4 CPUs, 32 GiB and room for 110 pods."""

    count: int = 0
    count_param: str = ""
    node_template_path: str = ""
    node_allocatable_strategy: NodeAllocatableStrategy | None = None
    label_node_prepare_strategy: LabelNodePrepareStrategy | None = None
    unique_node_label_strategy: UniqueNodeLabelStrategy | None = None
    template_params: Params = {}


class CreateNamespaces(Operation, frozen=True, kw_only=True, rename="camel"):
    """Create namespaces named ``<prefix>-<index>``."""

    prefix: str = ""
    count: int = 0
    count_param: str = ""
    namespace_template_path: str = ""


class CreatePods(Operation, frozen=True, kw_only=True, rename="camel"):
    """Create pods, and wait until they have nodes unless told otherwise.

    Parameters
    ----------
    count_multiplier_param
        Parameter that multiplies the count.
    steady_state, duration
        For this long, every pod that gets a node is deleted and replaced by a new pod.
    collect_metrics
        Whether the pods of this operation are measured.
    namespace
        Namespace of the pods; None for ``namespace-<index of the operation>``.
    signature_batch_size
        Number of pods in a row with the same label ``signature``; newer than v1.36.
    nominated_node_name
        Not supported; newer than v1.36.
    """

    count: int = 0
    count_param: str = ""
    count_multiplier_param: str = ""
    steady_state: bool = False
    steady_state_param: str = ""
    duration: str = ""
    duration_param: str = ""
    collect_metrics: bool = False
    namespace: str | None = None
    pod_template_path: str = ""
    skip_wait_to_completion: bool = False
    persistent_volume_template_path: str = ""
    persistent_volume_claim_template_path: str = ""
    template_params: Params = {}
    signature_batch_size: int = 0
    signature_batch_size_param: str = ""
    nominated_node_name: str = ""


class CreatePodSets(Operation, frozen=True, kw_only=True, rename="camel"):
    """Carry out one `CreatePods` in each namespace ``<namespacePrefix>-<index>``."""

    count: int = 0
    count_param: str = ""
    namespace_prefix: str = ""
    create_pods_op: CreatePods


class CreateAny(Operation, frozen=True, kw_only=True, rename="camel"):
    """Create objects of any kind; one unless counted."""

    namespace: str = ""
    template_path: str = ""
    count: int | None = None
    count_param: str = ""
    template_params: Params = {}


class UpdateAny(Operation, frozen=True, kw_only=True, rename="camel"):
    """Replace objects of any kind, and their status; or one of their subresources."""

    namespace: str = ""
    template_path: str = ""
    count: int | None = None
    count_param: str = ""
    update_per_second: int = 0
    subresources: list[str] = []
    template_params: Params = {}


class DeletePods(Operation, frozen=True, kw_only=True, rename="camel"):
    """Delete the pods of a namespace that have some labels; at once, or so many a second."""

    namespace: str = ""
    label_selector: dict[str, str] = {}
    skip_wait_to_completion: bool = False
    delete_pods_per_second: int = 0


class Churn(Operation, frozen=True, kw_only=True, rename="camel"):
    """Create objects, or create and delete them in turn, next to the operations that follow."""

    mode: str = ""
    number: int = 0
    interval_milliseconds: int = 0
    namespace: str | None = None
    template_paths: list[str] = []


class Barrier(Operation, frozen=True, kw_only=True, rename="camel"):
    """Wait until the pods of earlier operations have nodes, or were tried."""

    namespaces: list[str] = []
    label_selector: dict[str, str] = {}
    stage_requirement: str = ""


class Sleep(Operation, frozen=True, kw_only=True, rename="camel"):
    """Do nothing for a while."""

    duration: str = ""
    duration_param: str = ""


class StartCollectingMetrics(Operation, frozen=True, kw_only=True, rename="camel"):
    """Begin to measure the pods of some namespaces."""

    name: str = ""
    namespaces: list[str] = []
    label_selector: dict[str, str] = {}


class StopCollectingMetrics(Operation, frozen=True, kw_only=True, rename="camel"):
    """End measuring, and keep the results."""


class CreateResourceDriver(Operation, frozen=True, kw_only=True, rename="camel"):
    """Publish devices of a driver for every node whose name matches a pattern."""

    driver_name: str = ""
    nodes: str = ""
    max_claims_per_node: int = 0
    max_claims_per_node_param: str = ""


class CreateResourceClaims(Operation, frozen=True, kw_only=True, rename="camel"):
    """Create claims from a template; the suite before v1.32."""

    namespace: str = ""
    template_path: str = ""
    count: int = 0
    count_param: str = ""


class AllocResourceClaims(Operation, frozen=True, kw_only=True, rename="camel"):
    """Give devices to the claims of a namespace, without pods; "" for all namespaces."""

    namespace: str = ""


class CreatePodGroups(Operation, frozen=True, kw_only=True, rename="camel"):
    """Create groups of pods in a namespace; newer than v1.36."""

    namespace: str = ""
    template_path: str = ""
    count: int = 0
    count_param: str = ""
    template_params: Params = {}


class WaitForPodGroups(Operation, frozen=True, kw_only=True, rename="camel"):
    """Wait until a namespace has so many groups of pods; newer than v1.36."""

    namespace: str = ""
    count: int = 0
    count_param: str = ""


def templates_of(op: Operation, default_pod: str) -> Iterator[str]:
    """Yield the paths of an operation's templates.

    Parameters
    ----------
    default_pod
        Template of pods for an operation that names none; "" for no template.
    """
    for field in msgspec.structs.fields(type(op)):
        value = getattr(op, field.name)
        if field.name == "template_paths":
            yield from value
        elif isinstance(value, CreatePods):
            yield from templates_of(value, default_pod)
        elif field.name.endswith("template_path"):
            yield from filter(None, [value or (field.name == "pod_template_path" and default_pod)])


OPERATIONS: Final[Mapping[str, type[Operation]]] = {
    "allocResourceClaims": AllocResourceClaims,
    "barrier": Barrier,
    "churn": Churn,
    "createAny": CreateAny,
    "createNamespaces": CreateNamespaces,
    "createNodes": CreateNodes,
    "createPodGroups": CreatePodGroups,
    "createPodSets": CreatePodSets,
    "createPods": CreatePods,
    "createResourceClaims": CreateResourceClaims,
    "createResourceDriver": CreateResourceDriver,
    "deletePods": DeletePods,
    "sleep": Sleep,
    "startCollectingMetrics": StartCollectingMetrics,
    "stopCollectingMetrics": StopCollectingMetrics,
    "updateAny": UpdateAny,
    "waitForPodGroups": WaitForPodGroups,
}
"""Every operation by its opcode."""
