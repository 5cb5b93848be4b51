"""The explanation as text for people; pure."""

from __future__ import annotations

import msgspec

from moorage.cli.render import Table
from moorage.explain.answer import Explanation, NodeAnswer, Suggestion


def report(explanation: Explanation, *, wide: bool) -> str:
    """Return an explanation: the sentence, notes, suggestions, the table of nodes.

    Parameters
    ----------
    explanation
        The explanation.
    wide
        Whether the table has a column for each plugin.
    """
    parts = [f"pod {explanation.namespace}/{explanation.name}: {explanation.sentence}"]
    if explanation.start is not msgspec.UNSET:
        parts.append(f"  {explanation.start.sentence}")
    parts += [f"  {note}" for note in explanation.notes]
    if explanation.suggestions:
        parts += ["", "Suggestions, each tried by itself:"]
        for index, suggestion in enumerate(explanation.suggestions, start=1):
            parts.append(f"  {index}. {suggestion_text(suggestion)}")
            parts += [f"     {suggestion.command}"] if suggestion.command else []
    if explanation.nodes:
        table = _wide_table(explanation.nodes) if wide else node_table(explanation.nodes)
        parts += ["", *table.lines()]
        left_out = explanation.node_count - len(explanation.nodes)
        if left_out:
            parts.append(f"({left_out} more nodes; --all shows them)")
    if explanation.source:
        parts += ["", explanation.source]
    return "\n".join(parts)


def suggestion_text(suggestion: Suggestion) -> str:
    """Return a suggestion, with the nodes that would take the pod."""
    if suggestion.kind in {
        "wait",
        "evict",
        "move",
        "priority",
        "node",
        "uncordon",
        "label",
        "taint",
        "member",
    }:
        return suggestion.text
    if suggestion.nodes == 1:
        return f"{suggestion.text}: {suggestion.node} takes it"
    more = "1 more node" if suggestion.nodes == 2 else f"{suggestion.nodes - 1} more nodes"
    return f"{suggestion.text}: {suggestion.node} and {more} take it"


def node_table(nodes: tuple[NodeAnswer, ...]) -> Table:
    """Return the table of nodes, with the answers of all plugins in one column."""
    rows = tuple((each.node, _score(each), _answers(each)) for each in nodes)
    return Table(("node", "score", "plugins"), rows)


def _score(answer: NodeAnswer) -> str:
    return "-" if answer.score is None else str(answer.score)


def _answers(answer: NodeAnswer) -> str:
    if answer.score is None:
        return "; ".join(
            f"{plugin}: {', '.join(reasons)}" for plugin, reasons in answer.rejections.items()
        )
    return ", ".join(f"{plugin} {score}" for plugin, score in answer.scores.items())


def _wide_table(nodes: tuple[NodeAnswer, ...]) -> Table:
    """Return the table with a column for each plugin: its score, or its reasons."""
    plugins = list(dict.fromkeys(name for each in nodes for name in each.rejections))
    scorers = list(dict.fromkeys(name for each in nodes for name in each.scores))
    columns = [*plugins, *(name for name in scorers if name not in plugins)]
    rows = tuple(
        (each.node, _score(each), *(_cell(each, plugin) for plugin in columns)) for each in nodes
    )
    return Table(("node", "score", *columns), rows)


def _cell(answer: NodeAnswer, plugin: str) -> str:
    if plugin in answer.rejections:
        return ", ".join(answer.rejections[plugin])
    if plugin in answer.scores:
        return str(answer.scores[plugin])
    return "ok" if answer.score is None else "-"
