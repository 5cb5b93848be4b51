"""The default class of a cluster, which objects that name none are given.

Mirrors kubernetes v1.36 plugin/pkg/admission/storage/storageclass/setdefault and
plugin/pkg/admission/network/defaultingressclass.
"""

from __future__ import annotations

from moorage.apiserver.kind import Context
from moorage.apiserver.kinds.tree import child, text


def default_class(ctx: Context, plural: str, annotation: str) -> str:
    """Return the name of the class that has an annotation as the default; empty for none.

    The newest class counts; of equally old classes, the smallest name.
    """
    found = [
        each
        for each in ctx.objects(plural)
        if child(each, "metadata", "annotations").get(annotation) == "true"
    ]
    found.sort(key=lambda each: text(each, "metadata", "name"))
    newest = max(found, key=lambda each: text(each, "metadata", "creationTimestamp"), default={})
    return text(newest, "metadata", "name")
