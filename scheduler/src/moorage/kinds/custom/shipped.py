"""The definitions of scheduler-plugins, which a cluster has where its scheduler uses them."""

from __future__ import annotations

from collections.abc import Collection
from importlib.resources import files
from typing import Final

import msgspec

from moorage.kinds.kind import Obj

SHIPPED: Final = ("elasticquotas", "podgroups")
"""Plural names of the kinds."""


def shipped_definitions(kinds: Collection[str] = SHIPPED) -> list[Obj]:
    """Return the custom resources of scheduler-plugins: pod groups and elastic quotas.

    Parameters
    ----------
    kinds
        Plural names of the wanted kinds.

    Source: kubernetes-sigs/scheduler-plugins (``scheduling.x-k8s.io/v1alpha1``). The kinds are
    ordinary definitions: a client may change or delete them.
    """
    manifests = files("moorage.kinds.custom").joinpath("manifests")
    return [
        msgspec.json.decode(manifests.joinpath(f"{plural}.json").read_bytes())
        for plural in SHIPPED
        if plural in kinds
    ]
