"""The changes that can be tried, as data: each is one thing that a person would do to a cluster."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec


class AddNode(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="change",
    tag="addNode",
):
    """Add a node.

    Parameters
    ----------
    manifest
        The node as plain JSON values.
    zone_turn
        Put the node into one of the cluster's zones, in turn: 0 for the first by name, and so on.
        None leaves its labels as they are.
    """

    manifest: dict[str, Any]
    zone_turn: int | None = None


class RemoveNode(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="change",
    tag="removeNode",
):
    """Delete a node; its pods are gone, and their owners make others."""

    name: str


class Cordon(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="change",
    tag="cordon",
):
    """Mark a node as unschedulable."""

    name: str


class Drain(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="change",
    tag="drain",
):
    """Cordon a node, and evict its pods all at once, as budgets allow; pods of DaemonSets stay."""

    name: str


class AddTaint(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="change",
    tag="taint",
):
    """Put a taint on a node; pods that do not tolerate NoExecute have to leave."""

    name: str
    key: str
    value: str
    effect: str


class Apply(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="change",
    tag="apply",
):
    """Create an object, or replace one that owns no pods."""

    manifest: dict[str, Any]
    namespace: str = "default"


class Scale(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="change",
    tag="scale",
):
    """Give a Deployment or its like another number of pods."""

    kind: str
    namespace: str
    name: str
    replicas: Annotated[int, msgspec.Meta(ge=0)]


class Delete(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="change",
    tag="delete",
):
    """Delete an object, with everything it owns; `kind` such as Deployment."""

    kind: str
    namespace: str
    name: str


class SetPriority(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="change",
    tag="setPriority",
):
    """Give a pod another priority, as if it had been made with it."""

    namespace: str
    name: str
    value: int


Change: TypeAlias = (
    AddNode | RemoveNode | Cordon | Drain | AddTaint | Apply | Scale | Delete | SetPriority
)
