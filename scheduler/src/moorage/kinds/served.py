"""One served kind, put together from functions.

Place in the flow: `kinds.all_kinds` builds one `ServedKind` for each resource. The verbs (create,
update, patch, ...) know the protocol and no kind; a kind knows no protocol. A verb calls, in this
order: ``default``, ``admit``, ``prepare_create`` or ``prepare_update``, ``validate``; then it
stores the object. A kind changes only the object it is told to change (never ``old``, never what
``lookup`` returned).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moorage.api.names import dns_subdomain_faults
from moorage.api.resources import ResourceType
from moorage.kinds.built_in import fact_of, verbs_of
from moorage.kinds.fields import Change, Rule, name_fields
from moorage.kinds.kind import (
    VERBS,
    Column,
    Context,
    FieldError,
    Obj,
    ScalePaths,
    Shape,
    Translation,
)
from moorage.kinds.metadata import check_metadata
from moorage.kinds.schema.shape import builtin_shape
from moorage.kinds.values.canonical import canonical_first
from moorage.kinds.values.list_bounds import NO_BOUNDS, ListBounds, list_bounds
from moorage.kinds.values.name_rules import NameRule
from moorage.kinds.values.warnings import deprecation_of

Prepare = Callable[[Obj, Context, ResourceType], None]
Complete = Callable[[Obj, Obj, Context], None]
Check = Callable[[Obj, "Obj | None"], list[FieldError]]


def default_nothing(obj: Obj) -> None:
    """Kinds without defaults."""


def keep_as_sent(obj: Obj, ctx: Context, resource: ResourceType) -> None:
    """Add nothing on creation."""


def keep_change(new: Obj, old: Obj, ctx: Context) -> None:
    """Copy nothing from the old object."""


def warn_of_nothing(obj: Obj) -> list[str]:
    """Return no warnings."""
    return []


def accept_all(new: Obj, old: Obj | None) -> list[FieldError]:
    """Accept every object that fits the schema."""
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of an object with a subresource of its own, such as ``resize`` of a pod.

    Parameters
    ----------
    take
        Copies the fields that a call may change. The first argument, a copy of the stored object,
        is changed; the second is the object in the body.
    check
        Rules of the resulting object, compared with the stored object.
    """

    take: Callable[[Obj, Obj], None]
    check: Check = accept_all


# Metadata that a call to ``status`` may change, unless the kind has its own.
OPEN_METADATA = ("annotations", "finalizers", "labels")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedKind:
    """The rules of one served resource.

    Parameters
    ----------
    resource
        Group, version, kind, names and scope.
    columns, cells
        Table output: the columns, and the function of whole rows; None where each column has its
        cell.
    defaults
        Fills in defaults, in place.
    status_defaults
        Fills in the defaults of the status alone; None where ``defaults`` is cheap enough.
    admit_new, admit_change
        Change a new object, or an update, as Kubernetes' own admission plugins do; see `admit`.
    on_create
        Adds the fields of creation; runs after status was reset and the generation set.
    on_update
        Copies fields of the old object into an update, or adds fields as creation would.
    settle
        Writes the server's own fields, once spec and status of an update are known.
    rules, change
        The errors of an object, and the errors of its change; `moorage.kinds.fields`
        builds both.
    check
        Rules that need both objects.
    check_status
        Rules of the status, for a write of the status alone.
    fields
        Values for field selectors; absent values are empty texts.
    field_labels
        Those of the ``fields`` that a field selector may name; None for all of them.
    name_rule
        Rule for valid names.
    has_status
        The kind has a status subresource; None for what the facts say.
    keeps_status
        Creation keeps the client's status (nodes register with their status).
    counts_generations
        ``metadata.generation`` is counted.
    created_by_put
        A PUT to the name of no object creates one (AllowCreateOnUpdate upstream).
    needs_version
        An update has to carry a resourceVersion (AllowUnconditionalUpdate is false upstream).
    shown_when_deleted
        A delete answers with the object even when it is gone (ReturnDeletedObject upstream).
    grants_rights
        A caller that creates or changes an object needs the rights that the object grants.
    open_status
        Fields of the metadata that may change together with the status.
    parts
        Parts of the object with a subresource, by the name of the subresource.
    more_subresources
        Subresources besides ``status``, ``scale`` and the parts.
    verbs
        Verbs of discovery that the resource answers; empty for the verbs in the facts.
    scale
        Paths of the counts in the subresource ``scale``; None for what the facts say.
    custom_shape
        Shape of the objects; None for built-in kinds.
    translation
        Conversion to the stored version; None where this version is stored.
    stored_only
        No path leads to this version: other versions of the kind are served.
    warn, warn_of_new
        Further warnings for a client that writes the object, and for a client that creates it.
    deprecation
        Warning of every answer about this version; for built-in kinds the facts have it.
    acted_on_by
        The part of moorage that acts on objects of this kind; empty where no part does.
    bounds
        The greatest lengths of lists; for built-in kinds `list_bounds` has them.
    """

    resource: ResourceType
    columns: tuple[Column, ...]
    cells: Callable[[Obj, int], list[Any]] | None = None
    defaults: Callable[[Obj], None] = default_nothing
    status_defaults: Callable[[Obj], None] | None = None
    admit_new: Prepare = keep_as_sent
    admit_change: Complete = keep_change
    on_create: Prepare = keep_as_sent
    on_update: Complete = keep_change
    settle: Complete = keep_change
    rules: Rule | None = None
    change: Change | None = None
    check: Check = accept_all
    check_status: Check = accept_all
    fields: Callable[[Obj], Mapping[str, str]] = name_fields
    field_labels: frozenset[str] | None = None
    name_rule: NameRule = dns_subdomain_faults
    has_status: bool | None = None
    keeps_status: bool = False
    counts_generations: bool = False
    created_by_put: bool = False
    needs_version: bool = False
    shown_when_deleted: bool = False
    grants_rights: bool = False
    open_status: tuple[str, ...] = OPEN_METADATA
    parts: Mapping[str, Part] = field(default_factory=dict)
    more_subresources: frozenset[str] = field(default=frozenset())
    scale: ScalePaths | None = None
    custom_shape: Shape | None = None
    translation: Translation | None = None
    stored_only: bool = False
    warn: Callable[[Obj], list[str]] = warn_of_nothing
    warn_of_new: Callable[[Obj], list[str]] = warn_of_nothing
    deprecation: str = ""
    verbs: frozenset[str] = frozenset()
    acted_on_by: str = ""
    bounds: ListBounds = NO_BOUNDS

    def __post_init__(self) -> None:
        """Give a built-in kind what the facts say about it, once, because each call needs it."""
        if self.has_status is None:
            object.__setattr__(self, "has_status", fact_of(self.resource, "status") is not None)
        if self.scale is None and fact_of(self.resource, "scale") is not None:
            object.__setattr__(self, "scale", ScalePaths())
        if not self.verbs:
            fact = fact_of(self.resource)
            verbs = VERBS if fact is None else frozenset(verbs_of(fact))
            object.__setattr__(self, "verbs", verbs)
        if self.custom_shape is None:
            object.__setattr__(self, "deprecation", deprecation_of(self.resource))
            object.__setattr__(self, "custom_shape", builtin_shape(self.resource))
            object.__setattr__(self, "bounds", list_bounds(self.resource))
            object.__setattr__(self, "defaults", canonical_first(self.resource, self.defaults))
            if self.status_defaults is not None:
                of_status = canonical_first(self.resource, self.status_defaults, part="status")
                object.__setattr__(self, "status_defaults", of_status)

    @property
    def subresources(self) -> frozenset[str]:
        """Names of the subresources served."""
        names = {*self.more_subresources, *self.parts}
        if self.has_status:
            names.add("status")
        if self.scale is not None:
            names.add("scale")
        return frozenset(names)

    @property
    def shape(self) -> Shape:
        """Shape of the objects."""
        assert self.custom_shape is not None, "set when the kind was made"
        return self.custom_shape

    def default(self, obj: Obj) -> None:
        """Drop nulls and unknown fields, and fill in defaults, in place."""
        if not self.shape.fits(obj):
            self.shape.prune(obj)
        self.defaults(obj)

    def default_status(self, obj: Obj) -> None:
        """Fill in the defaults of the status alone, in place; called where only it is used.

        The object has been checked against the schema, and unknown fields are gone.
        """
        (self.status_defaults or self.defaults)(obj)

    def admit(self, new: Obj, old: Obj | None, ctx: Context) -> None:
        """Change a sent object as Kubernetes' own admission plugins do, in place.

        They come before the policies and webhooks of clients, and once more after those have
        changed the object: what they have added they leave alone. ``old`` is None for a new object.

        Raises
        ------
        moorage.kinds.status.StatusError
            403.
        """
        if old is None:
            self.admit_new(new, ctx, self.resource)
        else:
            self.admit_change(new, old, ctx)

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        """Turn a sent object into a stored one, in place.

        Raises
        ------
        moorage.kinds.status.StatusError
            Admission refuses the object (403).
        """
        metadata = obj.setdefault("metadata", {})
        metadata.pop("generation", None)
        if self.counts_generations:
            metadata["generation"] = 1
        if self.has_status and not self.keeps_status:
            obj.pop("status", None)
            self.defaults(obj)
        self.on_create(obj, ctx, self.resource)

    def prepare_update(self, new: Obj, old: Obj, *, subresource: str | None, ctx: Context) -> None:
        """Restore fields that this call may not change; raise the generation after a change.

        ``subresource`` is None for the object itself: status is kept from ``old``. For ``status``
        the rest is kept from ``old``. Any other subresource is a part of the object.
        """
        if subresource == "status":
            self._keep_all_but_status(new, old)
            self.settle(new, old, ctx)
        elif subresource is not None and subresource in self.parts:
            self._keep_all_but_part(new, old, self.parts[subresource])
        elif subresource is None:
            self.on_update(new, old, ctx)
            self._keep_status(new, old)
            self.settle(new, old, ctx)

    def _keep_all_but_status(self, new: Obj, old: Obj) -> None:
        metadata = dict(old["metadata"])
        if "resourceVersion" in new["metadata"]:
            metadata["resourceVersion"] = new["metadata"]["resourceVersion"]
        for key in self.open_status:
            metadata.pop(key, None)
            if new["metadata"].get(key) is not None:
                metadata[key] = new["metadata"][key]
        status = new.get("status", {})
        for key in [key for key in new if key not in ("apiVersion", "kind")]:
            del new[key]
        new.update({key: value for key, value in old.items() if key not in ("status", "metadata")})
        new["metadata"] = metadata
        new["status"] = status

    def _keep_all_but_part(self, new: Obj, old: Obj, part: Part) -> None:
        stored = copy.deepcopy(old)
        part.take(stored, new)
        stored["metadata"]["resourceVersion"] = new["metadata"]["resourceVersion"]
        if self.counts_generations and _body(stored) != _body(old):
            stored["metadata"]["generation"] = stored["metadata"].get("generation", 0) + 1
        new.clear()
        new.update(stored)

    def _keep_status(self, new: Obj, old: Obj) -> None:
        if self.has_status:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        metadata = new["metadata"]
        metadata.pop("generation", None)
        if "generation" in old["metadata"]:
            changed = self.counts_generations and _body(new) != _body(old)
            metadata["generation"] = old["metadata"]["generation"] + changed

    def validate(self, obj: Obj, old: Obj | None, *, subresource: str | None) -> list[FieldError]:
        """Return every error of the object, or of its change; ``old`` is None on create."""
        errors = check_metadata(obj, old, namespaced=self.resource.namespaced, rule=self.name_rule)
        if too_long := self.bounds.faults(obj):
            return errors + too_long
        if subresource == "status":
            return errors + self.check_status(obj, old)
        if subresource is not None and subresource in self.parts:
            return errors + self.parts[subresource].check(obj, old)
        if self.rules is not None:
            errors += self.rules(obj, "")
        errors += self.check(obj, old)
        return errors + self.change(obj, old) if self.change and old is not None else errors

    def warnings(self, obj: Obj, *, new: bool) -> list[str]:
        """Return further warnings for a client that writes the object, or creates it."""
        if self.bounds.faults(obj):
            return []  # The object is refused, before each element of its lists is looked at.
        return self.warn(obj) + self.warn_of_new(obj) if new else self.warn(obj)

    def selectable_fields(self, obj: Obj) -> Mapping[str, str]:
        """Values for field selectors.

        The keys are the same for every object, so that an unknown field label can be refused.
        """
        return self.fields(obj)

    def row(self, obj: Obj, now_ns: int) -> list[Any]:
        """Cells of Table output, one for each column."""
        if self.cells is not None:
            return self.cells(obj, now_ns)
        return [column.cell(obj, now_ns) for column in self.columns if column.cell is not None]


def _body(obj: Obj) -> dict[str, Any]:
    return {
        key: value for key, value in obj.items() if key not in ("metadata", "apiVersion", "kind")
    }
