"""The explanation of an object as text for people; pure."""

from __future__ import annotations

from typing import Final

from moorage.cli.render import Table
from moorage.explain.workloads.answer import (
    AmountUse,
    ObjectExplanation,
    ObjectSuggestion,
    PodCount,
    Stage,
)

_STATES: Final = {
    Stage.NOT_CREATED: "not created",
    Stage.NOT_READY: "not ready",
}


def object_report(explanation: ObjectExplanation, *, wide: bool) -> str:
    """Return an explanation: the sentence, notes, the pods by state, suggestions.

    Parameters
    ----------
    wide
        Whether the table says which plugins keep the pods, and names one of them.
    """
    parts = [f"{object_title(explanation)}: {explanation.sentence}"]
    parts += [f"  {note}" for note in explanation.notes]
    if explanation.counts:
        parts += ["", *count_table(explanation.counts, wide=wide).lines()]
    if explanation.amounts:
        parts += ["", *amount_table(explanation.amounts).lines()]
    if explanation.suggestions:
        parts += ["", "Suggestions, each tried by itself:"]
        for index, each in enumerate(explanation.suggestions, start=1):
            parts += [f"  {index}. {object_suggestion_text(each)}"]
            parts += [f"     {each.command}"] if each.command else []
    if explanation.source:
        parts += ["", explanation.source]
    return "\n".join(parts)


def object_title(explanation: ObjectExplanation) -> str:
    """Return the object, or the selection of pods, in words."""
    if explanation.type_ == "pods":
        where = f"in {explanation.namespace}" if explanation.namespace else "in all namespaces"
        return f"pods {explanation.name} {where}" if explanation.name else f"pods {where}"
    place = "/".join(part for part in (explanation.namespace, explanation.name) if part)
    return f"{explanation.type_} {place}"


def amount_table(amounts: tuple[AmountUse, ...]) -> Table:
    """Return the table of bounded amounts."""
    rows = [(each.of, each.resource, each.used, each.most, each.note) for each in amounts]
    return Table(("of", "resource", "used", "most", "note"), tuple(rows))


def count_table(counts: tuple[PodCount, ...], *, wide: bool) -> Table:
    """Return the table of pods by state and cause; `wide` is as of `object_report`."""
    headings = ["pods", "state", "why"]
    rows = []
    for each in counts:
        row = [str(each.pods), _STATES.get(each.stage, each.stage.value), each.cause]
        if wide:
            row[2:2] = [", ".join(each.plugins), each.example]
        rows.append(tuple(row))
    if wide:
        headings[2:2] = ["plugins", "example"]
    return Table(tuple(headings), tuple(rows))


def object_suggestion_text(suggestion: ObjectSuggestion) -> str:
    """Return a suggestion, with how many pods it helps."""
    if suggestion.of == 1:
        return suggestion.text
    if suggestion.tried < suggestion.of:
        tried = f"{suggestion.tried} that were tried, of {suggestion.of}"
        if suggestion.helps >= suggestion.tried:
            return f"{suggestion.text}: helps all {tried}"
        return f"{suggestion.text}: helps {suggestion.helps} of {tried}"
    if suggestion.helps >= suggestion.of:
        return f"{suggestion.text}: helps all {suggestion.of}"
    return f"{suggestion.text}: helps {suggestion.helps} of {suggestion.of}"
