"""How many recorded cases of each family are equal, at least. A number may only grow.

When a plugin or a mode is built, raise the numbers of the families it opens up, and take the
families that became whole into `WHOLE`.
"""

from __future__ import annotations

from typing import Final

EQUAL: Final = {
    "declaredfeatures": 15,
    "dra": 131,  # and 9 that hold a fault of kube-scheduler
    "edges-affinity": 139,
    "edges-basics": 133,
    "edges-nominated": 68,
    "edges-preemption": 129,
    "edges-resources": 124,
    "edges-volumes": 126,
    "extender": 60,
    "hints": 60,  # and 60 with hints that kube-scheduler forgets
    "hintsgang": 15,
    "imagelocality": 55,
    "interpodaffinity": 100,
    "large": 6,
    "mixed": 90,
    "nodeaffinity": 55,
    "nodename": 20,
    "nodeports": 90,
    "noderesources": 90,
    "nodeunschedulable": 25,
    "nominated": 85,
    "podgroup": 60,
    "podgrouptopology": 60,
    "podgroupworkload": 45,
    "podtopologyspread": 100,
    "preemption": 75,
    "profiles": 60,
    "resourcestrategy": 65,
    "sampling": 36,
    "schedulinggates": 25,
    "spreaddefaults": 65,
    "tainttoleration": 55,
    "volumes": 100,
}

WHOLE: Final = frozenset(
    {
        "declaredfeatures",
        "dra",
        "edges-affinity",
        "edges-basics",
        "edges-nominated",
        "edges-preemption",
        "edges-resources",
        "edges-volumes",
        "extender",
        "hints",
        "hintsgang",
        "imagelocality",
        "interpodaffinity",
        "large",
        "mixed",
        "nodeaffinity",
        "nodename",
        "nodeports",
        "noderesources",
        "nodeunschedulable",
        "nominated",
        "podgroup",
        "podgrouptopology",
        "podgroupworkload",
        "podtopologyspread",
        "preemption",
        "profiles",
        "resourcestrategy",
        "sampling",
        "schedulinggates",
        "spreaddefaults",
        "tainttoleration",
        "volumes",
    }
)
"""Families of which every case is supported, and equal but for faults of kube-scheduler."""
