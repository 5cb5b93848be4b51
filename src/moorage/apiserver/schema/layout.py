"""How objects of the field tables merge under server-side apply.

Place in the flow: `applying` takes objects apart by these layouts. Mostly they follow from how a
strategic merge patch treats a field; where the two differ, the tables below say how. The facts
are the ``+listType``, ``+listMapKey``, ``+mapType`` and ``+structType`` marks of the public
Kubernetes API, v1.36 staging/src/k8s.io/api.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from moorage.apiserver.kind import Layout, LayoutForm
from moorage.apiserver.schema.catalog import DEFINITIONS, PACKAGES, short_name
from moorage.apiserver.schema.language import Field, TypeRef

Keys = tuple[tuple[str, Any], ...]

# Lists told apart by other keys than the merge key of a strategic merge patch, or by keys at all.
_PORTS: Keys = (("containerPort", None), ("protocol", "TCP"))
_KEYED: Mapping[str, Keys] = {
    "Container.ports": _PORTS,
    "EphemeralContainer.ports": _PORTS,
    "ServiceSpec.ports": (("port", None), ("protocol", "TCP")),
    "PodSpec.topologySpreadConstraints": (("topologyKey", None), ("whenUnsatisfiable", None)),
    "ResourceRequirements.claims": (("name", None),),
}
# Lists of scalars, each owned by itself.
_SETS = frozenset(
    {
        "ObjectMeta.finalizers",
        "NodeSpec.podCIDRs",
        "UncountedTerminatedPods.failed",
        "UncountedTerminatedPods.succeeded",
        "NodeFeatures.declaredFeatures",
    }
)
# Values owned whole although they are objects, maps, or lists that merge by a patch.
_ATOMIC_FIELDS = frozenset(
    {
        "PodSpec.nodeSelector",
        "ReplicationControllerSpec.selector",
        "ServiceSpec.selector",
        "JobStatus.conditions",
        "ManagedFieldsEntry.fieldsV1",
    }
)
_ATOMIC_TYPES = frozenset(
    {
        "ConfigMapKeySelector",
        "EndpointAddress",
        "EndpointPort",
        "LabelSelector",
        "LoadBalancerIngress",
        "LocalObjectReference",
        "NodeSelector",
        "NodeSelectorTerm",
        "ObjectFieldSelector",
        "ObjectReference",
        "PersistentVolumeClaimTemplate",
        "ResourceFieldSelector",
        "ScopeSelector",
        "ScopedResourceSelectorRequirement",
        "SecretKeySelector",
        "SecretReference",
        "ServiceBackendPort",
        "TopologySelectorTerm",
        "TypedLocalObjectReference",
    }
)
# Full names of those whose namesakes of other versions are taken apart.
_ATOMIC_NAMES = frozenset({f"{PACKAGES['autoscaling/v1']}.CrossVersionObjectReference"})


class _Atomic:
    """A value owned as a whole."""

    form: LayoutForm = "atomic"
    keys: Keys = ()

    def member(self, name: str) -> Layout:
        return self

    def item(self) -> Layout:
        return self


class _Deduced:
    """A value of which nothing is known: objects field by field, all else whole."""

    form: LayoutForm = "object"
    keys: Keys = ()

    def member(self, name: str) -> Layout:
        return self

    def item(self) -> Layout:
        return ATOMIC


ATOMIC: Layout = _Atomic()
"""A value owned as a whole."""
DEDUCED: Layout = _Deduced()
"""A value without a schema."""


class _List:
    def __init__(self, form: LayoutForm, keys: Keys, of: TypeRef) -> None:
        self.form = form
        self.keys = keys
        self._of = of

    def member(self, name: str) -> Layout:
        return ATOMIC

    def item(self) -> Layout:
        return _of_type(self._of)


class _Map:
    form: LayoutForm = "object"
    keys: Keys = ()

    def __init__(self, of: TypeRef) -> None:
        self._of = of

    def member(self, name: str) -> Layout:
        return _of_type(self._of)

    def item(self) -> Layout:
        return ATOMIC


class _Object:
    form: LayoutForm = "object"
    keys: Keys = ()

    def __init__(self, name: str) -> None:
        self._definition = DEFINITIONS[name]

    def member(self, name: str) -> Layout:
        field = self._definition.fields.get(name)
        if field is None:
            return ATOMIC
        return _field_layout(f"{short_name(self._definition.name)}.{name}", field)

    def item(self) -> Layout:
        return ATOMIC


def list_keys(where: str, field: Field) -> Keys:
    """Return the keys of a list's items, empty when they have none.

    Parameters
    ----------
    where
        Short name of the definition and the field's name, ``Container.ports``.
    field
        The field.
    """
    found = _KEYED.get(where)
    if found is None and field.merge_key and where not in _ATOMIC_FIELDS:
        found = ((field.merge_key, None),)
    return found or ()


def list_type(where: str, field: Field) -> str:
    """Return ``map``, ``set`` or ``atomic``, as ``x-kubernetes-list-type`` says it."""
    if list_keys(where, field):
        return "map"
    return "set" if where in _SETS else "atomic"


def is_atomic(where: str, type_ref: TypeRef) -> bool:
    """Whether an object or a map is owned as a whole."""
    return where in _ATOMIC_FIELDS or _is_atomic_type(type_ref.name)


def _is_atomic_type(name: str) -> bool:
    return short_name(name) in _ATOMIC_TYPES or name in _ATOMIC_NAMES


@cache
def object_layout(name: str) -> Layout:
    """Return the layout of a definition, by its full name."""
    return ATOMIC if _is_atomic_type(name) else _Object(name)


@cache
def _field_layout(where: str, field: Field) -> Layout:
    type_ref = field.type
    if is_atomic(where, type_ref):
        return ATOMIC
    if type_ref.shape == "list":
        keys = list_keys(where, field)
        if keys:
            return _List("keyed", keys, type_ref.element)
        return _List("set", (), type_ref.element) if where in _SETS else ATOMIC
    return _of_type(type_ref)


def _of_type(type_ref: TypeRef) -> Layout:
    if type_ref.shape == "map":
        return _Map(type_ref.element)
    if type_ref.shape == "object":
        return object_layout(type_ref.name)
    if type_ref.name == "any":
        return DEDUCED
    return ATOMIC
