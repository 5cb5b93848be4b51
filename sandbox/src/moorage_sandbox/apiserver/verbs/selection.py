"""The objects that a list, a watch or a collection delete selects.

A `Selection` looks only at the fields of a `Record`, so selecting never decodes an object.
"""

from __future__ import annotations

import msgspec

from moorage.api.selectors import (
    FieldRequirement,
    Selector,
    parse_field_selector,
    parse_label_selector,
)
from moorage.kinds.status import bad_request
from moorage_sandbox.apiserver.catalog import Target
from moorage_sandbox.apiserver.wire.requests import Query
from moorage_sandbox.storage.record import Record


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Namespace, labels and fields of a selection.

    Parameters
    ----------
    namespace
        Empty for all.
    labels
        None for all.
    fields
        Conditions that must all hold; paths are in the stored form.
    """

    namespace: str = ""
    labels: Selector | None = None
    fields: tuple[FieldRequirement, ...] = ()

    @property
    def everything(self) -> bool:
        """Whether the selection has neither label nor field conditions."""
        return self.labels is None and not self.fields

    def selects_record(self, record: Record) -> bool:
        """Whether a record is selected."""
        if self.namespace and record.namespace != self.namespace:
            return False
        if self.labels is not None and not self.labels.matches(record.labels):
            return False
        if not self.fields:  # nearly always, and a generator takes longer than all the rest
            return True
        return all(each.matches(record.fields.get(each.path, "")) for each in self.fields)

    def one_name(self) -> str:
        """Return the only name that can match, or an empty string."""
        for each in self.fields:
            if each.path == "metadata.name" and each.op == "=":
                return each.value
        return ""


def read_selection(target: Target, query: Query) -> Selection:
    """Compile the selectors of a call.

    Raises
    ------
    StatusError
        400: a selector cannot be parsed, or names a field that is not selectable.
    """
    labels = None
    if text := query.text("labelSelector"):
        try:
            labels = parse_label_selector(text)
        except ValueError as error:
            raise bad_request(str(error)) from error
    return Selection(
        namespace=target.namespace,
        labels=labels,
        fields=_read_fields(target, query.text("fieldSelector")),
    )


def _read_fields(target: Target, text: str) -> tuple[FieldRequirement, ...]:
    requirements = []
    if target.name:
        requirements.append(FieldRequirement("metadata.name", "=", target.name))
    if text:
        try:
            parsed = parse_field_selector(text)
        except ValueError as error:
            raise bad_request(str(error)) from error
        for label, op, value in parsed:
            path = target.served.stored_field(label)
            if not target.served.selects_by(path):
                raise bad_request(f"field label not supported: {label}")
            requirements.append(FieldRequirement(path, op, value))
    return tuple(requirements)
