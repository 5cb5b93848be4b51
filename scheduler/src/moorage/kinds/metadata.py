"""Rules of ``metadata``, the same for every kind.

Place in the flow: first part of every kind's validation. Mirrors kubernetes v1.36 apimachinery
pkg/api/validation/objectmeta.go.
"""

from __future__ import annotations

from typing import Any

from moorage.api.names import dns_label_faults, label_value_faults, qualified_name_faults
from moorage.kinds.kind import FieldError, Obj, forbidden, invalid, required
from moorage.kinds.tree import child, objects, text
from moorage.kinds.values.name_rules import NameRule

# Largest total size of all annotations of an object, bytes.
ANNOTATIONS_LIMIT_BYTES = 256 * 1024


def check_metadata(
    obj: Obj, old: Obj | None, *, namespaced: bool, rule: NameRule
) -> list[FieldError]:
    """Return the errors of an object's metadata, and of its change."""
    metadata = child(obj, "metadata")
    name = text(metadata, "name")
    errors = []
    if old is None:
        errors += _check_names(metadata, name, rule)
        namespace = text(metadata, "namespace")
        if namespaced and not namespace:
            errors.append(required("metadata.namespace"))
        elif namespaced:
            faults = dns_label_faults(namespace)
            errors += [invalid("metadata.namespace", namespace, fault) for fault in faults]
        elif namespace:
            errors.append(forbidden("metadata.namespace", "not allowed on this type"))
    before: Obj = {} if old is None else child(old, "metadata")
    # Stored metadata has been checked before; every write of a status passes here.
    if any(metadata.get(key) != before.get(key) for key in _FREE):
        errors += _check_free(metadata)
    if old is not None:
        if "deletionTimestamp" in before:
            errors += _check_new_finalizers(metadata, before)
        for key in ("name", "namespace", "uid", "creationTimestamp"):
            if metadata.get(key, before.get(key)) != before.get(key):
                errors.append(immutable(f"metadata.{key}", metadata[key]))
    return errors


# Fields of metadata that clients may change at any time.
_FREE = ("labels", "annotations", "ownerReferences", "finalizers")


def _check_free(metadata: Obj) -> list[FieldError]:
    errors = check_labels(metadata.get("labels"), "metadata.labels")
    errors += check_annotations(metadata.get("annotations"), "metadata.annotations")
    errors += _check_owners(metadata)
    for index, finalizer in enumerate(metadata.get("finalizers") or []):
        where = f"metadata.finalizers[{index}]"
        errors += [
            invalid(where, finalizer, fault) for fault in qualified_name_faults(str(finalizer))
        ]
    return errors


def _check_new_finalizers(metadata: Obj, before: Obj) -> list[FieldError]:
    """Refuse finalizers that an object gets while it is being deleted."""
    more = sorted({*(metadata.get("finalizers") or ())} - {*(before.get("finalizers") or ())})
    if not more:
        return []
    listed = ", ".join(f'"{each}"' for each in more)
    detail = "no new finalizers can be added if the object is being deleted, found new finalizers "
    return [forbidden("metadata.finalizers", f"{detail}[]string{{{listed}}}")]


def _check_names(metadata: Obj, name: str, rule: NameRule) -> list[FieldError]:
    errors = []
    generate = text(metadata, "generateName")
    if generate:
        # The prefix is completed by letters and digits, so a trailing hyphen is fine.
        probe = generate[:-1] + "a" if generate[-1] in "-." else generate
        errors += [invalid("metadata.generateName", generate, fault) for fault in rule(probe)]
    if name:
        errors += [invalid("metadata.name", name, fault) for fault in rule(name)]
    else:
        errors.append(required("metadata.name", "name or generateName is required"))
    return errors


def immutable(field: str, value: Any) -> FieldError:
    """Build the error for an immutable field."""
    return invalid(field, value, "field is immutable")


def check_template_metadata(metadata: Obj | None, field: str) -> list[FieldError]:
    """Return the errors of the metadata of a template, which has labels and annotations only."""
    content = metadata or {}
    errors = check_annotations(content.get("annotations"), f"{field}.annotations")
    errors += check_labels(content.get("labels"), f"{field}.labels")
    return errors + [
        forbidden(f"{field}.{key}", "cannot be set")
        for key, value in content.items()
        if value and key not in ("annotations", "labels")
    ]


def check_labels(labels: Obj | None, field: str) -> list[FieldError]:
    """Return the errors of a map of labels."""
    errors = []
    for key, value in (labels or {}).items():
        errors += [invalid(field, key, fault) for fault in qualified_name_faults(key)]
        errors += [invalid(field, value, fault) for fault in label_value_faults(str(value))]
    return errors


def value_faults(value: str | None, field: str) -> list[FieldError]:
    """Return the errors of the value of a label or taint."""
    return [invalid(field, value or "", fault) for fault in label_value_faults(value or "")]


def check_annotations(annotations: Obj | None, field: str) -> list[FieldError]:
    """Return the errors of a map of annotations; values may be any text up to a total size."""
    errors = []
    size = 0
    for key, value in (annotations or {}).items():
        errors += [invalid(field, key, fault) for fault in qualified_name_faults(key.lower())]
        size += len(key.encode()) + len(str(value).encode())
    if size > ANNOTATIONS_LIMIT_BYTES:
        detail = f"may not be more than {ANNOTATIONS_LIMIT_BYTES} bytes"
        errors.append(FieldError("FieldValueTooLong", field, "", detail))
    return errors


def _check_owners(metadata: Obj) -> list[FieldError]:
    errors = []
    controllers = 0
    for index, owner in enumerate(objects(metadata, "ownerReferences")):
        field = f"metadata.ownerReferences[{index}]"
        for key, detail in (
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ):
            if not text(owner, key):
                errors.append(invalid(f"{field}.{key}", owner.get(key, ""), detail))
        controllers += owner.get("controller") is True
    if controllers > 1:
        errors.append(
            invalid(
                "metadata.ownerReferences",
                objects(metadata, "ownerReferences"),
                "Only one reference can have Controller set to true",
            )
        )
    return errors
