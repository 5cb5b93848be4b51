"""The patch that ``apply`` sends: from the last applied object, the manifest and the live object.

Pure; ``command`` reads and writes. A field set by another client is left alone. A field that was
applied before and is no longer in the manifest is removed.

Notes
-----
The annotation is kubectl's own, so both can take turns. The patch is a JSON merge patch, as kubectl
sends for kinds it has no schema of: a list that differs is sent whole.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from moorage.cli.manifests import Manifest

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def with_last_applied(obj: Manifest) -> Manifest:
    """Return the object with the annotation that holds the manifest as written."""
    marked = copy.deepcopy(obj)
    metadata = marked["metadata"]
    annotations = dict(metadata.get("annotations") or {})
    annotations.pop(LAST_APPLIED, None)
    metadata["annotations"] = annotations
    text = json.dumps(marked, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    # The line end is part of the value: kubectl compares the whole text.
    metadata["annotations"] = {**annotations, LAST_APPLIED: f"{text}\n"}
    return marked


def last_applied(live: Manifest) -> Manifest:
    """Return the object applied last; an empty object if there is no readable one."""
    text = (live.get("metadata") or {}).get("annotations", {}).get(LAST_APPLIED, "")
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def three_way_patch(original: Any, modified: Any, live: Any) -> dict[str, Any]:
    """Return the JSON merge patch from the live object to the wanted object.

    Parameters
    ----------
    original
        The object as applied the last time.
    modified
        The wanted object.
    live
        The object on the server.
    """
    patch: dict[str, Any] = {}
    for key, wanted in modified.items():
        have = live.get(key)
        if isinstance(wanted, dict) and isinstance(have, dict):
            before = original.get(key)
            inner = three_way_patch(before if isinstance(before, dict) else {}, wanted, have)
            if inner:
                patch[key] = inner
        elif not _covered(wanted, have):
            patch[key] = wanted
    for key in original:
        if key not in modified and key in live:
            patch[key] = None
    return patch


def _covered(wanted: Any, have: Any) -> bool:
    """Whether the live value contains the wanted value; it may hold more, such as defaults."""
    if isinstance(wanted, dict):
        return isinstance(have, dict) and all(
            _covered(value, have.get(key)) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(have, list)
            and len(wanted) == len(have)
            and all(_covered(mine, theirs) for mine, theirs in zip(wanted, have, strict=True))
        )
    return bool(wanted == have)
