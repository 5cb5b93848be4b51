"""The default class of a cluster, which is given to objects that name none.

Mirrors kubernetes v1.36 plugin/pkg/admission/storage/storageclass/setdefault and
plugin/pkg/admission/network/defaultingressclass.
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.api.resources import ResourceType
from moorage.kinds.kind import Context
from moorage.kinds.tree import Json, attach, child, text


def default_class(
    classes: str, *, marked: str, field: str, older: str
) -> Callable[[Json, Context, ResourceType], None]:
    """Return the function that gives a new object the default class, if it names none.

    Of several default classes the newest counts; of equally old ones, the smallest name.

    Parameters
    ----------
    classes
        Plural of the classes.
    marked
        Annotation of a default class.
    field
        Name of the class in the object's ``spec``.
    older
        Annotation of an object that names its class in the old way.
    """

    def give(obj: Json, ctx: Context, resource: ResourceType) -> None:
        spec = attach(obj, "spec")
        if spec.get(field) is not None or older in child(obj, "metadata", "annotations"):
            return
        candidates = [
            each
            for each in ctx.stored_objects(classes)
            if child(each, "metadata", "annotations").get(marked) == "true"
        ]
        candidates.sort(key=lambda each: text(each, "metadata", "name"))
        newest = max(
            candidates, key=lambda each: text(each, "metadata", "creationTimestamp"), default={}
        )
        if name := text(newest, "metadata", "name"):
            spec[field] = name

    return give
