"""No phrase occurs in which a word of Kubernetes means something else.

The glossary lists the phrases. Looked at: names of modules, classes, functions, parameters and
attributes, comments and docstrings of ``src`` and ``tests``, ids of rows of tables, and the pages
of ``docs``. Left out: text in backticks, paths, code blocks, messages, and records of decisions
(they keep the words of their time).
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests import packages, tidy

ROOT = Path(__file__).resolve().parents[1]
GLOSSARY = ROOT / "docs" / "glossary.md"
MODULE = "scheduler/src/moorage/engine/a.py"
TESTS = "scheduler/tests/engine/test_a.py"
_LEFT_OUT = ("docs/decisions/", "docs/changelog.md", "docs/glossary.md", "tests/test_glossary.py")


def _rows(heading: str) -> list[list[str]]:
    """Return the cells of the table that a heading begins, without its first row."""
    lines = GLOSSARY.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


@cache
def homonyms() -> dict[str, list[str]]:
    """Return, by word of Kubernetes, the phrases in which it means something else."""
    return {row[0]: [phrase.strip() for phrase in row[-1].split(",")] for row in _rows("Word")}


def forms(phrase: str) -> set[str]:
    """Return a phrase and its plural."""
    plural = f"{phrase[:-1]}ies" if phrase.endswith("y") else f"{phrase}s"
    return {phrase, plural}


def names(text: str) -> Iterator[str]:
    """Yield every name that a module gives to something."""
    for node in tidy.nodes(text):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg == "id":
            yield from _text_of(node.value)


def _text_of(value: ast.expr) -> list[str]:
    """Return the id of a row of a table, if it is written out."""
    return [value.value] if isinstance(value, ast.Constant) and isinstance(value.value, str) else []


def _comments_and_docstrings(text: str) -> Iterator[str]:
    if "#" in text:  # half of the modules have no comment, and reading tokens is slow
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.string
    for node in tidy.nodes(text):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


def prose(path: str, text: str) -> str:
    """Return what a person reads as sentences: no code, no paths, no names with capitals inside."""
    if path.endswith(".py"):
        text = "\n".join(_comments_and_docstrings(text))
        text = re.sub(r"::\n\n(?: {4,}.*\n|\n)+", "\n", text)
    text = re.sub(r"^ *```.*?^ *```", " ", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"``.*?``|`[^`]*`|<!--.*?-->|\]\([^)]*\)", " ", text, flags=re.DOTALL)
    words = re.sub(r"\S*[/_=]\S*|\S*\w\.\w\S*|\b\w+[a-z][A-Z]\w*", " ", text)
    return " ".join(words.lower().split())


@cache
def _pattern() -> re.Pattern[str]:
    every = {form for each in homonyms().values() for phrase in each for form in forms(phrase)}
    longest_first = sorted(every, key=lambda form: (-len(form), form))
    return re.compile(rf"(?<![\w-])(?:{'|'.join(longest_first)})(?![\w-])")


def occurrences(path: str, text: str) -> Iterator[str]:
    """Yield each wrong phrase in a file: as prose, or as the name of something."""
    yield from _pattern().findall(prose(path, text))
    if path.endswith(".py"):
        for name in sorted({*names(text), Path(path).stem}):
            words = " ".join(re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)).lower()
            yield from _pattern().findall(words)


def _may_hold_one(text: str) -> bool:
    """Whether the letters of a file hold a phrase; to read its tokens takes ten times as long."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z]+", " ", text)
    return _pattern().search(words.lower()) is not None


def _files() -> list[str]:
    modules = (
        path
        for folder in (*packages.FOLDERS, *packages.TESTS)
        for path in (ROOT / folder).rglob("*.py")
    )
    paths = [*modules, *(ROOT / "docs").rglob("*.md")]
    texts = (path.relative_to(ROOT).as_posix() for path in paths)
    return sorted(path for path in texts if not path.startswith(_LEFT_OUT))


def test_no_word_of_kubernetes_means_something_else() -> None:
    lines = [
        f"{path}: {phrase}"
        for path in _files()
        if _may_hold_one(text := (ROOT / path).read_text()) or _may_hold_one(Path(path).stem)
        for phrase in occurrences(path, text)
    ]
    assert lines == []


def test_only_homonyms_are_forbidden() -> None:
    """A word that is forbidden breeds another one that nobody knows: a dozen, and no more."""
    assert len(homonyms()) <= 12
    phrases = [phrase for each in homonyms().values() for phrase in each]
    assert [phrase for phrase in phrases if " " not in phrase] == ["minion"]
    assert {"event", "priority", "reserve", "pod", "node"} <= set(homonyms())


@pytest.mark.parametrize(
    ("path", "text", "phrases"),
    [
        pytest.param(MODULE, "# a priority queue\n", ["priority queue"], id="a comment"),
        pytest.param(MODULE, '"""Two tree nodes."""\n', ["tree nodes"], id="a plural"),
        pytest.param(MODULE, "class LeafNode: ...\n", ["leaf node"], id="a class"),
        pytest.param(MODULE, "def f(tree_nodes): ...\n", ["tree nodes"], id="an argument"),
        pytest.param(MODULE, "self.pod_weight = 1\n", ["pod weight"], id="an attribute"),
        pytest.param("scheduler/src/moorage/engine/pod_entry.py", "", ["pod entry"], id="a module"),
        pytest.param(
            "docs/a.md",
            "A priority\nqueue of [minions](m.md).\n",
            ["priority queue", "minions"],
            id="a page",
        ),
        pytest.param(TESTS, 'param(1, id="a leaf node")\n', ["leaf node"], id="the id of a row"),
        pytest.param(TESTS, "def test_a_minion(): ...\n", ["minion"], id="the name of a test"),
        pytest.param(MODULE, "# `priority queue`\n", [], id="in backticks"),
        pytest.param(MODULE, "# ``a minion``\n", [], id="in double backticks"),
        pytest.param(MODULE, "f(x=ast.tree_node)\n", [], id="an attribute of another library"),
        pytest.param(MODULE, "# pkg/minion/x.go, a.minion\n", [], id="a path"),
        pytest.param("docs/a.md", "```\na minion\n```\n", [], id="a code block"),
        pytest.param(MODULE, "# a job, a worker, the host\n", [], id="words of English"),
        pytest.param(MODULE, "# a queue of priorities\n", [], id="the word in its own meaning"),
    ],
)
def test_a_phrase_is_found(path: str, text: str, phrases: list[str]) -> None:
    assert not phrases or _may_hold_one(text) or _may_hold_one(Path(path).stem)
    assert list(occurrences(path, text)) == phrases
