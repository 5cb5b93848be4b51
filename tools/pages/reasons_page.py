"""The pages of the codes of reasons, made from the table that ``moorage reason`` prints."""

from __future__ import annotations

from moorage.api.reasons.codes import ReasonCode
from moorage.explain.reasons.texts import TEXTS

_WRITTEN: str = "<!-- Written by `make docs` from the table of reasons. Do not edit. -->"

_INTRODUCTION = (
    "Why a pod has no node, as a closed vocabulary. `moorage queue`, `moorage explain -o json`,",
    "the records of attempts, the metric `moorage_failed_attempts_total` and the page use these",
    "codes, and `moorage reason CODE` prints the page of one. Every message of a plugin has one",
    "code. Of an attempt that counts several reasons the code is that of the reason which a pod",
    "meets last: nodes with it have passed more plugins than the others, so they are the nearest",
    "to a place. The codes are in this order.",
)


def reason_pages() -> dict[str, str]:
    """Return the page of each code, and the list of them, by file name."""
    return {"index.md": _index(), **{f"{code}.md": _page(code) for code in ReasonCode}}


def _index() -> str:
    rows = [f"| [{code}]({code}.md) | {text.what} |" for code, text in TEXTS.items()]
    return "\n".join(
        [
            "# Reasons",
            "",
            _WRITTEN,
            "",
            *_INTRODUCTION,
            "",
            "| Code | What it is |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def _page(code: ReasonCode) -> str:
    text = TEXTS[code]
    return "\n".join(
        [
            f"# {code}",
            "",
            _WRITTEN,
            "",
            text.what,
            "",
            "## See it",
            "",
            "```text",
            text.see,
            "```",
            "",
            "## Fix it",
            "",
            text.fix,
            "",
            "## Example",
            "",
            "```text",
            text.example,
            "```",
            "",
            "[All reasons](index.md)",
            "",
        ]
    )
