"""How many recorded cases of each family are equal, at least. A number may only grow.

When a plugin or a mode is built, raise the numbers of the families it opens up, and take the
families that became whole into `WHOLE`.
"""

from __future__ import annotations

from typing import Final

EQUAL: Final = {
    "declaredfeatures": 15,
    "dra": 0,
    "edges-affinity": 0,
    "edges-basics": 65,
    "edges-nominated": 28,
    "edges-preemption": 114,
    "edges-resources": 124,
    "edges-volumes": 0,
    "extender": 0,
    "hints": 0,
    "hintsgang": 0,
    "imagelocality": 55,
    "interpodaffinity": 0,
    "large": 0,
    "mixed": 0,
    "nodeaffinity": 55,
    "nodename": 20,
    "nodeports": 90,
    "noderesources": 90,
    "nodeunschedulable": 25,
    "nominated": 7,
    "podgroup": 0,
    "podgrouptopology": 0,
    "podgroupworkload": 0,
    "podtopologyspread": 0,
    "preemption": 35,
    "profiles": 2,
    "resourcestrategy": 65,
    "sampling": 0,
    "schedulinggates": 25,
    "spreaddefaults": 4,
    "tainttoleration": 55,
    "volumes": 0,
}

WHOLE: Final = frozenset(
    {
        "declaredfeatures",
        "edges-resources",
        "imagelocality",
        "nodeaffinity",
        "nodename",
        "nodeports",
        "noderesources",
        "nodeunschedulable",
        "resourcestrategy",
        "schedulinggates",
        "tainttoleration",
    }
)
"""Families of which every case is supported and equal, fields not compared left aside."""
