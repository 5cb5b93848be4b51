"""Writes the page about drawn worlds, from the report that ``make worlds`` keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from moorage_lab.fault_sim.company.coverage import coverage_of
from moorage_lab.fault_sim.company.features import FEATURES, WIDE_FEATURES, features_of
from moorage_lab.fault_sim.company.series import SeriesReport

REPORT: Final = Path(__file__).resolve().parents[2] / "docs" / "worlds.json"
"""The report of ``moorage fault-sim company -o json``."""

_HEAD: Final = """# Random clusters, played in virtual time

<!-- Written by `make docs` from docs/worlds.json. Do not edit. -->

`moorage fault-sim company` plays small worlds with the real controllers in virtual time, and judges
the totals of each world ([play with faults](play-with-faults.md)). `make worlds` plays these
worlds again.

- Worlds: {worlds}, seeds {first} to {last}. {exceptions} have a total that is too large.
- Pairs of features that meet in a world: {pairs} of {pairs_possible}.
- Triples of features that meet in a world: {triples} of {triples_possible}.

## Worst figures

A world breaks a rule if its total is larger than the rule allows. The worst world is the one that
exceeds the allowed total most, or comes closest to it. A rule without one counted nothing.

| Rule | Worlds that break it | Worst world |
|---|---:|---|
"""
_FEATURES: Final = """
## Features

| Feature | Worlds |
|---|---:|
"""
_WIDE: Final = """
## Wide worlds

With `--wide`, a world has more features at once, and these in addition:
{more}.
In a quarter of these worlds or more, all forms of groups come at one moment. The combinations below
are those of {worlds} worlds, seeds {first} to {last}. They are not in the figures above.

- Pairs of features that meet in a world: {pairs} of {pairs_possible}. Missing: {missing}.
- Triples of features that meet in a world: {triples} of {triples_possible}.
"""
_RULES: Final = (
    "evictions",
    "bound-in-vain",
    "deleted-twice",
    "writes-at-rest",
    "settling",
    "waiting-in-vain",
    "preempts-late",
    "half-groups",
    "nominated-in-vain",
    "storm",
    "failures",
)


def worlds_page() -> str:
    """Return the page."""
    report = msgspec.json.decode(REPORT.read_bytes(), type=SeriesReport)
    covered = report.coverage
    text = _HEAD.format(
        worlds=report.worlds,
        first=report.first_seed,
        last=report.first_seed + report.worlds - 1,
        exceptions=report.exceptions,
        pairs=covered.pairs,
        pairs_possible=covered.pairs_possible,
        triples=covered.triples,
        triples_possible=covered.triples_possible,
    )
    for rule in _RULES:
        worst = report.worst.get(rule, "").partition("\n")[0].replace("|", "\\|")
        text += f"| {rule} | {report.by_rule.get(rule, 0)} | {worst} |\n"
    text += _FEATURES
    for name, count in covered.worlds_by_feature.items():
        text += f"| {name} | {count} |\n"
    return text + _wide_section(range(report.first_seed, report.first_seed + report.worlds))


def _wide_section(seeds: range) -> str:
    """Return what wide worlds of these seeds have; they are drawn here, and not played."""
    drawn = (tuple(sorted(features_of(seed, wide=True))) for seed in seeds)
    covered = coverage_of(drawn, WIDE_FEATURES)
    missing = ["`" + "` with `".join(pair) + "`" for pair in covered.missing_pairs]
    return _WIDE.format(
        more=", ".join(f"`{name}`" for name in WIDE_FEATURES if name not in FEATURES),
        worlds=len(seeds),
        first=seeds[0],
        last=seeds[-1],
        pairs=covered.pairs,
        pairs_possible=covered.pairs_possible,
        missing=", ".join(missing) or "none",
        triples=covered.triples,
        triples_possible=covered.triples_possible,
    )
