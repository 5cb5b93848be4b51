"""A document as one HTML page, which needs nothing from elsewhere; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from moorage.base.version import __version__
from moorage.cli.render import Table
from moorage.cli.report.document import Document, Part, Step

_NUMBER_COLUMNS: Final = frozenset({"pods", "score", "used", "most", "members", "placed"})
_STYLE: Final = """
:root { color-scheme: light dark; --text: #1f2328; --dim: #59636e; --line: #d8dee4;
  --back: #ffffff; --code: #f3f5f7; --mark: #0b5cad }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --dim: #9aa4af; --line: #30363d;
  --back: #0d1117; --code: #171c23; --mark: #6cb6ff } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--text); background: var(--back) }
h1 { font-size: 1.1rem; margin: 0; color: var(--dim); font-weight: 600 }
.sentence { font-size: 1.25rem; margin: 0.3rem 0 1rem; overflow-wrap: anywhere }
.sentence::first-letter { text-transform: uppercase }
.asked { color: var(--dim); font-size: 13px; overflow-wrap: anywhere }
h2 { font-size: 1rem; margin: 1.8rem 0 0.4rem; border-bottom: 1px solid var(--line) }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: 13px }
th, td { text-align: left; vertical-align: top; padding: 0.2rem 1rem 0.2rem 0;
  border-bottom: 1px solid var(--line) }
th { color: var(--dim); font-weight: 600 }
.number { text-align: right; font-variant-numeric: tabular-nums }
code, pre { font: 13px/1.45 ui-monospace, monospace; background: var(--code) }
code { display: block; padding: 0.3rem 0.6rem; margin: 0.2rem 0 0.6rem; white-space: pre-wrap;
  overflow-wrap: anywhere; border-left: 3px solid var(--mark) }
pre { padding: 0.6rem; overflow-x: auto; max-height: 40rem }
summary { cursor: pointer; color: var(--dim) }
@media print { details { display: none } }
"""


def page(document: Document, *, question: str, time: str, notes: Sequence[str], answer: str) -> str:
    """Return the page.

    Parameters
    ----------
    document
        The answer.
    question
        The command line that was asked.
    time
        When it was asked, RFC 3339.
    notes
        What the command said about its answer.
    answer
        The answer as JSON, which the page shows on request.
    """
    facts = (f"Asked {time} with moorage {__version__}.", document.source, *notes)
    title = escape(f"{document.subject}: {document.sentence}")
    body = [
        f"<h1>{escape(document.subject)}</h1>",
        f'<p class="sentence">{escape(document.sentence)}</p>',
        f"<code>{escape(question)}</code>",
        *(f'<p class="asked">{escape(fact)}</p>' for fact in facts if fact),
    ]
    for part in document.parts:
        body += _part(part)
    body.append(
        f"<h2>For programs</h2><details><summary>The answer as JSON</summary>"
        f"<pre>{escape(answer)}</pre></details>"
    )
    text = "\n".join(body)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body>\n{text}\n</body></html>\n"
    )


def _part(part: Part) -> Iterator[str]:
    if part.title:
        yield f"<h2>{escape(part.title)}</h2>"
    yield from (f"<p>{escape(sentence)}</p>" for sentence in part.sentences)
    if part.table is not None:
        yield _table(part.table)
    if part.names:
        items = "".join(f"<li>{escape(name)}</li>" for name in part.names)
        yield f"<ul>{items}</ul>"
    if part.steps:
        yield f"<ol>{''.join(map(_step, part.steps))}</ol>"


def _step(step: Step) -> str:
    command = f"<code>{escape(step.command)}</code>" if step.command else ""
    return f"<li>{escape(step.text)}{command}</li>"


def _table(table: Table) -> str:
    styles = [' class="number"' * (name in _NUMBER_COLUMNS) for name in table.headings]
    head = "".join(
        f"<th{style}>{escape(name)}</th>"
        for name, style in zip(table.headings, styles, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td{s}>{escape(cell)}</td>" for cell, s in zip(row, styles, strict=True))
        + "</tr>\n"
        for row in table.rows
    )
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table>'
        "</div>"
    )
