"""The features of worlds, and which of them the world of a seed has.

The drawn features decide everything else, so the worlds of a seed stay what they are: what came
later is drawn apart, for wide worlds only.
"""

from __future__ import annotations

from typing import Final

from moorage.base.rng import Random, Streams
from moorage_lab.fault_sim.company.setups import COMPLETE, PERMIT, TWO_PROFILES

WORKLOADS: Final = {
    "replica-set": "ReplicaSet",
    "deployment": "Deployment",
    "stateful-set": "StatefulSet",
    "job": "Job",
    "daemon-set": "DaemonSet",
}
"""Kinds of workloads, by feature."""

GROUPS: Final = ("group-object", "group-labels", "group-kubernetes")
"""The forms of pod groups that every world may have.

With `PERMIT` the members of a group are placed one by one.
"""

PLACEMENT: Final = (
    "spread",
    "affinity",
    "anti-affinity",
    "host-ports",
    "gpu-shares",
    "claims",
    "volumes",
)
"""Constraints of pods, besides room."""

AROUND: Final = (
    "budget",
    "resource-quota",
    "elastic-quota",
    "autoscaler",
    "small-pods",
    "mixed-graces",
    "middle-priority",
    "second-wave",
    "node-comes",
    "node-goes",
    "cordon",
    PERMIT,
)
"""Limits, events and settings around the pods."""

FEATURES: Final = (*WORKLOADS, *GROUPS, "single-pods", *PLACEMENT, *AROUND)
"""Every feature."""

OLD_LABEL: Final = "group-old-label"
"""A PodGroup of Coscheduling that pods name by the label of its first versions."""

BARE: Final = "bare-pods"
"""Pods of low priority without an owner, each with a grace of its own."""

WIDE_FEATURES: Final = (*FEATURES, OLD_LABEL, BARE, COMPLETE, TWO_PROFILES)
"""Every feature of wide worlds."""

_ALL_FORMS_SHARE = 0.25  # of the wide worlds; a guess


def features_of(seed: int, *, wide: bool = False) -> frozenset[str]:
    """Draw the features of a world; of a wide one, more at once."""
    rng = Streams(seed).stream("features")
    if wide:
        return _wide_features(rng)
    kinds = rng.sample(list(WORKLOADS), rng.choice((1, 1, 2)))
    comers = rng.sample([*GROUPS, "single-pods"], rng.choice((1, 1, 2)))
    return frozenset(
        {
            *kinds,
            *comers,
            *rng.sample(PLACEMENT, rng.randint(0, 3)),
            *rng.sample(AROUND, rng.randint(1, 4)),
        }
    )


def _wide_features(rng: Random) -> frozenset[str]:
    kinds = rng.sample([*WORKLOADS, BARE], rng.choice((1, 2, 3)))
    forms = [*GROUPS, OLD_LABEL]
    comers = rng.sample([*forms, "single-pods"], rng.choice((1, 2, 3)))
    if rng.random() < _ALL_FORMS_SHARE:
        comers += forms
    features = {
        *kinds,
        *comers,
        *rng.sample(PLACEMENT, rng.randint(0, 3)),
        *rng.sample([*AROUND, COMPLETE, TWO_PROFILES], rng.randint(1, 5)),
    }
    # The complete search is for groups that are placed in one attempt.
    return frozenset(features - {COMPLETE} if PERMIT in features else features)
