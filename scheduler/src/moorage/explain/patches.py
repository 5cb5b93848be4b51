"""Patches of pods and of other objects, so that a user can apply exactly what was tried."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from moorage.api.codec import from_dict, to_dict
from moorage.api.patch_operations import Operation
from moorage.api.pod import Pod


def patched(pod: Pod, operations: Sequence[Operation]) -> Pod:
    """Return a pod with a patch applied."""
    import jsonpatch  # a scheduler that nobody asks does not need it

    return from_dict(Pod, jsonpatch.JsonPatch(operations).apply(to_dict(pod)))


def patch_command(namespace: str, what: str, change: Mapping[str, Any]) -> str:
    """Return the kubectl command that applies a merge patch to an object, as ``kind name``."""
    text = shlex.quote(json.dumps(change, separators=(",", ":")))
    return f"kubectl -n {namespace} patch {what} --type=merge -p {text}"
