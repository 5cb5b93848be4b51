"""Which pods have run times alike: by owner, image and requests, each class within a wider one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from moorage.api.pod import Pod

_GENERATED: Final = re.compile(r"(-([0-9]+|(?=[a-z]*[0-9])[a-z0-9]{5,10}))+$")
"""The ends of names that controllers make: numbers, and letters mixed with digits."""
_BETWEEN: Final = "\n"
"""Occurs in none of the parts."""


def classes_of(pod: Pod, requests: Mapping[str, int]) -> tuple[str, ...]:
    """Return the classes of a pod, the narrowest first; the last is its namespace.

    A Job of a CronJob has a name of its own for each run, so what controllers append to names
    is left out.

    Parameters
    ----------
    pod
        The pod.
    requests
        What it requests in total, by resource.
    """
    owner = pod.metadata.controller
    kind, name = ("Pod", pod.name) if owner is None else (owner.kind, owner.name)
    images = " ".join(each.image for each in pod.spec.containers)
    amounts = " ".join(f"{resource}={amount}" for resource, amount in sorted(requests.items()))
    stem = _GENERATED.sub("", name)
    parts = (pod.namespace, f"{kind} {stem}", images, amounts)
    return tuple(_BETWEEN.join(parts[:length]) for length in range(len(parts), 0, -1))
