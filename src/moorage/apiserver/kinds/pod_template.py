"""PodTemplate: a pod template that is stored by itself.

Place in the flow: a row of `moorage.apiserver.kinds.registry`. Mirrors kubernetes v1.36
pkg/apis/core/validation (ValidatePodTemplate) and pkg/printers/internalversion.
"""

from __future__ import annotations

from typing import Any

from moorage.apiserver.built_in import resource_type
from moorage.apiserver.kind import Column, FieldError, Obj
from moorage.apiserver.kinds.cells import NAME, format_labels, name_of
from moorage.apiserver.kinds.check_pod import check_template
from moorage.apiserver.kinds.pod_defaults import default_template
from moorage.apiserver.kinds.served import ServedKind
from moorage.apiserver.kinds.tree import child, objects, text

_COLUMNS = (
    NAME,
    Column("Containers", description="Names of the template's containers"),
    Column("Images", description="Images of the template's containers"),
    Column("Pod Labels", description="Labels of the template"),
)


def _check(new: Obj, old: Obj | None) -> list[FieldError]:
    allowed = ("Always", "Never", "OnFailure")
    return check_template(child(new, "template"), "template", restart=allowed)


def _cells(obj: Obj, now_ns: int) -> list[Any]:
    found = objects(obj, "template", "spec", "containers")
    names, images = (",".join(text(each, key) for each in found) for key in ("name", "image"))
    labels = child(obj, "template", "metadata", "labels")
    return [name_of(obj), names, images, format_labels(labels)]


POD_TEMPLATE = ServedKind(
    resource=resource_type("v1", "podtemplates"),
    columns=_COLUMNS,
    cells=_cells,
    defaults=default_template,
    counts_generations=True,
    check=_check,
)
