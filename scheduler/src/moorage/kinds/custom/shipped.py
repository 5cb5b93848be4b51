"""The definitions of scheduler-plugins, which every sandbox starts with."""

from __future__ import annotations

from importlib.resources import files

import msgspec

from moorage.kinds.kind import Obj

_SHIPPED = ("elasticquotas.json", "podgroups.json")


def shipped_definitions() -> list[Obj]:
    """Return the custom resources of scheduler-plugins: pod groups and elastic quotas.

    Source: kubernetes-sigs/scheduler-plugins (``scheduling.x-k8s.io/v1alpha1``). The kinds are
    ordinary definitions: a client may change or delete them.
    """
    manifests = files("moorage.kinds.custom").joinpath("manifests")
    return [msgspec.json.decode(manifests.joinpath(name).read_bytes()) for name in _SHIPPED]
