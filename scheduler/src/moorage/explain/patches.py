"""Changed pods: a change is a JSON patch, so that a user can apply exactly what was tried."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.api.codec import from_dict, to_dict
from moorage.api.patch_operations import Operation
from moorage.api.pod import Pod


def patched(pod: Pod, operations: Sequence[Operation]) -> Pod:
    """Return a pod with a patch applied."""
    import jsonpatch  # a scheduler that nobody asks does not need it

    return from_dict(Pod, jsonpatch.JsonPatch(operations).apply(to_dict(pod)))
