"""Parts that every Kubernetes object has: metadata, selectors as written, conditions, references.

The bottom of the api room: every other module of types imports this one.

Three rules hold for all types here. A list or map that is absent is empty, unless Kubernetes
treats absent and empty differently; then the field is ``... | None``. Times stay strings (RFC
3339), None when absent. Quantities stay as written and are read by `moorage.api.quantity`.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from moorage.api.naming import json_name

Quantity: TypeAlias = str | int | float
"""A quantity as on the wire; `moorage.api.quantity.parse_quantity` gives its value."""

ResourceList: TypeAlias = dict[str, Quantity]
"""Resource name to quantity, as on the wire."""

_TEMPLATE_HASH: Final = "pod-template-hash"


class ApiStruct(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, rename=json_name, omit_defaults=True
):
    """Base of every type in this room: frozen, keyword only, JSON names by rule.

    ``gc=False`` is safe because API objects are trees; nothing may ever put a cycle into one.
    """


class OwnerReference(ApiStruct, frozen=True, kw_only=True):
    """An object this one depends on; at most one of them is the managing controller."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(ApiStruct, frozen=True, kw_only=True):
    """Metadata of a stored object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    finalizers: list[str] = []

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages the object."""
        for each in self.owner_references:  # a change of a pod asks dozens of times
            if each.controller:
                return each
        return None

    @property
    def owner_title(self) -> str:
        """The controller as people name it, ``kind/name``; "" for none.

        A ReplicaSet of a Deployment has the Deployment's name and the hash of the template, which
        its pods have as a label. The Deployment is then the owner.
        """
        controller = self.controller
        if controller is None:
            return ""
        kind, name = controller.kind, controller.name
        suffix = f"-{self.labels.get(_TEMPLATE_HASH, '')}"
        if kind == "ReplicaSet" and len(suffix) > 1 and name.endswith(suffix):
            return f"deployment/{name.removesuffix(suffix)}"
        return f"{kind.lower()}/{name}"


class ListMeta(ApiStruct, frozen=True, kw_only=True):
    """Metadata of a list answer; ``continue_`` is the token of the next page."""

    resource_version: str = ""
    continue_: str = ""
    remaining_item_count: int | None = None


class ApiObject(ApiStruct, frozen=True, kw_only=True):
    """Base of every kind: group/version, kind and metadata.

    ``api_version`` and ``kind`` are empty inside list answers, as a server leaves them out there.
    """

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """``metadata.namespace``, empty for cluster-scoped kinds."""
        return self.metadata.namespace


class PartialObject(ApiObject, frozen=True, kw_only=True):
    """Any object, of which only type and metadata are read (bookmarks, error messages)."""


class Condition(ApiStruct, frozen=True, kw_only=True):
    """One condition of a pod, node or other status; ``type`` is its key in the list."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_probe_time: str | None = None
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None


class ObjectReference(ApiStruct, frozen=True, kw_only=True):
    """A pointer to an object, as Events and volume bindings write it."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class LabelSelectorRequirement(ApiStruct, frozen=True, kw_only=True):
    """One expression of a label selector: In, NotIn, Exists or DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelector(ApiStruct, frozen=True, kw_only=True):
    """A label selector as written; an empty one matches everything, a missing one nothing.

    Compile it with `moorage.api.selectors.compile_label_selector`.
    """

    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


class NodeSelectorRequirement(ApiStruct, frozen=True, kw_only=True):
    """One expression about a node: In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class NodeSelectorTerm(ApiStruct, frozen=True, kw_only=True):
    """Requirements on labels and fields of a node, all of which must hold."""

    match_expressions: list[NodeSelectorRequirement] = []
    match_fields: list[NodeSelectorRequirement] = []


class NodeSelector(ApiStruct, frozen=True, kw_only=True):
    """Terms of which one must hold; no terms match nothing."""

    node_selector_terms: list[NodeSelectorTerm] = []
