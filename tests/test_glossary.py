"""A word that the glossary says to avoid does not occur: not in names, not in prose.

Looked at: names of modules, classes, functions, parameters and attributes, comments and docstrings
of ``src`` and ``tests``, ids of rows of tables, and the pages of ``docs``. Left out: text in
backticks, paths, code blocks, messages, records of decisions (they keep the words of their time),
and words in italics in the glossary.
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

from tests import tidy

ROOT = Path(__file__).resolve().parents[1]
GLOSSARY = ROOT / "docs" / "glossary.md"
ENGINE = "src/moorage/engine/a.py"
TESTS = "tests/engine/test_a.py"
# Rooms that were cut out of another room and have its words.
_WORDS_OF = {
    **dict.fromkeys(("cel", "kinds", "policies", "rules", "storage"), "apiserver"),
    "nodeshapes": "nodeagent",
    "workloads": "controllers",
}
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
def avoided() -> list[str]:
    """Return the words to avoid that have no everyday meaning."""
    cells = (re.sub(r"\([^)]*\)", "", row[-1]) for row in _rows("Use"))
    words = (word.strip() for cell in cells for word in cell.split(","))
    return sorted({word for word in words if word and not word.startswith("*")})


@cache
def allowed() -> dict[str, tuple[str, ...]]:
    """Return, by word, the rooms and folders where the word means something else."""
    return {word: tuple(where.split(", ")) for word, where, _ in _rows("Word")}


def forms(word: str) -> set[str]:
    """Return a word and its plural."""
    plural = f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
    return {word, plural}


def place_of(path: str) -> str:
    """Return the room of a module or of its tests, or the folder of a page.

    Tests of several rooms are in the place ``tests``, where each word is allowed that has another
    meaning in some room.
    """
    parts = path.split("/")
    if parts[0] == "tests":
        room = parts[1].split("_")[0]
        room = _WORDS_OF.get(room, room)
        return room if (ROOT / "src" / "moorage" / room).is_dir() else "tests"
    if parts[0] == "src":
        room = parts[2].removesuffix(".py")
        return _WORDS_OF.get(room, room)
    return parts[0] if len(parts) == 2 else "/".join(parts[:2])


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
def _pattern() -> tuple[re.Pattern[str], dict[str, str]]:
    """Return what finds any word to avoid, and the word of each form that it finds."""
    word_of = {form: word for word in avoided() for form in forms(word)}
    longest_first = sorted(word_of, key=lambda form: (-len(form), form))
    return re.compile(rf"(?<![\w-])(?:{'|'.join(longest_first)})(?![\w-])"), word_of


def occurrences(path: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield each word to avoid in a file, allowed or not, with the name or the words around it."""
    pattern, word_of = _pattern()
    said = prose(path, text)
    for match in pattern.finditer(said):
        yield word_of[match[0]], said[max(0, match.start() - 40) : match.end() + 40]
    given = sorted({*names(text), Path(path).stem}) if path.endswith(".py") else []
    for name in given:
        split = " ".join(re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)).lower()
        yield from ((word_of[match[0]], name) for match in pattern.finditer(split))


def is_allowed(word: str, path: str) -> bool:
    """Return whether a word to avoid means something else in a file."""
    places = allowed().get(word, ())
    if path.startswith("tests/"):
        return "tests" in places or place_of(path) in (*places, "tests" if places else "")
    return place_of(path) in places


def found(path: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield each word to avoid where it is not allowed."""
    for word, where in occurrences(path, text):
        if not is_allowed(word, path):
            yield word, where


def _files() -> list[str]:
    modules = (path for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.py"))
    paths = [*modules, *(ROOT / "docs").rglob("*.md")]
    texts = (path.relative_to(ROOT).as_posix() for path in paths)
    return sorted(path for path in texts if not path.startswith(_LEFT_OUT))


@pytest.fixture(scope="module")
def everything() -> list[tuple[str, str, str]]:
    return [
        (path, word, where)
        for path in _files()
        for word, where in occurrences(path, (ROOT / path).read_text())
    ]


def test_no_word_to_avoid_occurs(everything) -> None:
    lines = [
        f"{path}: {word}: {where}" for path, word, where in everything if not is_allowed(word, path)
    ]
    assert lines == [], "\n".join(["", *lines])


def test_the_words_to_avoid_are_read_from_the_glossary() -> None:
    assert {"minion", "verdict", "story", "priority function", "lock"} <= set(avoided())
    assert {"run", "weight", "reserve"}.isdisjoint(avoided())  # in italics
    assert set(allowed()) <= set(avoided()), "an allowance of a word that is not avoided"
    assert allowed()["kill"] == ("sandbox", "fault_sim", "docs/explanation", "docs/how-to")


def test_no_allowance_is_needless(everything) -> None:
    needed = {
        (word, "tests" if path.startswith("tests/") else place_of(path))
        for path, word, _ in everything
    }
    given = {(word, place) for word, places in allowed().items() for place in places}
    assert sorted(given - needed) == []


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        pytest.param(ENGINE, "# the story of a pod\n", ["story"], id="a comment"),
        pytest.param(ENGINE, '"""Two verdicts."""\n', ["verdict"], id="a plural"),
        pytest.param(ENGINE, "class RowVerdict: ...\n", ["verdict"], id="a class"),
        pytest.param(ENGINE, "def f(old_story): ...\n", ["story"], id="an argument"),
        pytest.param(ENGINE, "self.story = 1\n", ["story"], id="an attribute"),
        pytest.param("src/moorage/engine/story.py", "", ["story"], id="a module"),
        pytest.param(
            "docs/a.md",
            "A pending\nlist of a [door](door.md).\n",
            ["pending list", "door"],
            id="a page",
        ),
        pytest.param(ENGINE, "# `story`\n", [], id="in backticks"),
        pytest.param(ENGINE, "# ``a story``\n", [], id="in double backticks"),
        pytest.param(ENGINE, "f(story=history.story)\n", [], id="an attribute of another library"),
        pytest.param(ENGINE, "# pkg/story/x.go, a.story\n", [], id="a path"),
        pytest.param("docs/a.md", "```\nthe story\n```\n", [], id="a code block"),
        pytest.param("src/moorage/sandbox/a.py", "def kill(): ...\n", [], id="where it is allowed"),
        pytest.param(ENGINE, "def kill(): ...\n", ["kill"], id="where it is not"),
        pytest.param(TESTS, 'param(1, id="a story")\n', ["story"], id="the id of a row"),
        pytest.param(TESTS, "def test_a_kill(): ...\n", ["kill"], id="the name of a test"),
        pytest.param("tests/sandbox/a.py", "# a kill\n", [], id="in tests of an allowed room"),
        pytest.param("tests/scenarios/a.py", "# a kill\n", [], id="in tests of several rooms"),
        pytest.param("tests/scenarios/a.py", "# a story\n", ["story"], id="a word never allowed"),
    ],
)
def test_a_word_is_found(path: str, text: str, words: list[str]) -> None:
    assert [word for word, _ in found(path, text)] == words
