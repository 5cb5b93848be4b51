"""``moorage report``: which answers become a page, what stands on it, and what is refused.

The answers come from a file of objects. Left out: what the answers say, which is the commands' own.
"""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from moorage.base.errors import UsageError
from moorage.cli.render import Table
from moorage.cli.report.document import Document, Part, Step, document_of
from moorage.cli.report.page import page
from moorage.cli.what_if.text import ChangeReport
from moorage.what_if.capacity.room import Room
from moorage.what_if.fullness import Use, UseChange
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from tests.cli.conftest import Type
from tests.cli.queue.test_text import ANSWER

OBJECTS = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {"apiVersion": "v1", "kind": "Node", **node_manifest("n1", cpu="2")},
        {"apiVersion": "v1", "kind": "Node", **node_manifest("n2", cpu="4")},
        {"apiVersion": "v1", "kind": "Pod", **pod_manifest("big", cpu="8")},
        {"apiVersion": "v1", "kind": "Pod", **pod_manifest("on-n1", cpu="1", nodeName="n1")},
    ],
}


class Read(HTMLParser):
    """What a page shows, by element, and what it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.shown: list[tuple[str, str]] = []
        self.loads: list[str] = []
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append(tag)
        self.loads += [name for name, _ in attrs if name in {"src", "href", "srcset", "action"}]
        self.loads += [tag] * (tag in {"script", "iframe", "img", "link"})

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open and data.strip():
            self.shown.append((self._open[-1], data.strip()))

    def of(self, *elements: str) -> list[str]:
        return [text for element, text in self.shown if element in elements]


@pytest.fixture
def asked(bare: Type) -> Type:
    Path("objects.json").write_text(json.dumps(OBJECTS))
    return bare


def test_a_pods_page_has_the_sentence_the_suggestions_and_the_nodes(asked: Type) -> None:
    words = ("explain", "pod", "big", "--from", "objects.json")
    found = json.loads(asked(*words, "-o", "json").stdout)
    done = asked("report", "--out", "big.html", *words)
    assert (done.exit_code, done.stdout) == (0, "")
    read = Read(Path("big.html").read_text())
    assert read.loads == []
    assert read.of("h1", "h2") == ["Pod default/big", "Suggestions", "Nodes", "For programs"]
    assert found["sentence"] in read.of("p")
    assert "moorage explain pod big --from objects.json" in read.of("code")
    assert read.of("th") == ["node", "score", "plugins"]
    assert [text for text in read.of("td") if text in ("n1", "n2")] == ["n1", "n2"]
    assert json.loads(read.of("pre")[0]) == found
    assert len(read.of("li")) == len(found["waysOut"]) > 0


def test_what_if_ends_with_the_code_of_the_command_and_shows_what_happens(asked: Type) -> None:
    words = ("what-if", "--drain", "n1", "--from", "objects.json")
    plain = asked(*words, "-o", "json")
    done = asked("report", *words)
    assert (plain.exit_code, done.exit_code) == (1, 1)
    read = Read(done.stdout)
    assert read.of("p")[0] == "Worse: 1 pod lost: no owner makes another"
    assert "Are lost, for they have no owner (1)" in read.of("h2")
    assert "How full nodes are" in read.of("h2")
    assert "default/pod/on-n1" in read.of("td")
    assert json.loads(read.of("pre")[0]) == json.loads(plain.stdout)


def test_capacity_has_the_first_sentence_in_large_and_the_pods_that_wait(asked: Type) -> None:
    words = ("capacity", "--from", "objects.json")
    read = Read(asked("report", *words).stdout)
    assert read.of("p")[0] == "Pods that wait: 1"
    assert "InsufficientCPU" in read.of("td")


def test_the_queue_has_pods_that_wait_alike_as_one_row() -> None:
    found = document_of("queue", msgspec.to_builtins(ANSWER))
    assert found.sentence.startswith("7 pods are on their way: 2 active, 1 backoff, ")
    pods, groups = found.parts
    assert pods.table is not None
    assert groups.table is not None
    assert pods.table.headings == (
        "pods",
        "owner",
        "group",
        "queue",
        "oldest",
        "reason",
        "message",
    )
    numbers = {row[1]: row[0] for row in pods.table.rows}
    assert numbers["default/deployment/db"] == "2"
    assert [row[1] for row in groups.table.rows] == [each.name for each in ANSWER.groups]


def test_room_is_told_next_to_what_binds() -> None:
    room = Room(3, 3, reached_most=False, message="0/2 fit", reasons={"cpu": 2}, by_node={})
    report = {
        "asked": "pods like those of deployment/web",
        "room": msgspec.to_builtins(room),
        "needs": [],
        "leftOut": [],
        "limit": "",
        "waiting": [],
        "source": "a file",
    }
    found = document_of("capacity", report)
    assert found.sentence == "3 more pods like those of deployment/web fit"
    assert found.parts[0].sentences == (
        "The next one finds no node: 0/2 fit",
        "What binds first: cpu, on 2 nodes",
    )


def test_rows_that_a_long_table_leaves_out_are_counted() -> None:
    use = Use(1, {"cpu": 1.0}, {"cpu": 4.0})
    answer = ChangeReport(
        anyway=(),
        starts=(),
        moves=(),
        lost=(),
        ended=(),
        newly_pending=(),
        still_pending=(),
        is_quiet=True,
        nodes=tuple(UseChange(f"n{index}", use, use) for index in range(203)),
        worse=(),
        source="",
    )
    part = document_of("what-if", msgspec.to_builtins(answer)).parts[-1]
    assert part.table is not None
    assert len(part.table.rows) == 200
    assert part.sentences == ("3 more rows are not shown; the answer as JSON has them",)


def test_every_text_is_escaped() -> None:
    bad = "<script>alert('x')</script>&"
    document = Document(
        subject=bad,
        sentence=bad,
        parts=(
            Part(
                title=bad,
                sentences=(bad,),
                table=Table((bad,), ((bad,),)),
                names=(bad,),
                steps=(Step(bad, bad),),
            ),
        ),
        source=bad,
    )
    text = page(document, question=bad, time="now", notes=[bad], answer=bad)
    assert "<script" not in text
    read = Read(text)
    assert read.loads == []
    assert sum(bad in shown for _, shown in read.shown) == 14


REFUSED = [
    pytest.param(("get", "pods"), r"report get: choose a question of explain, .*", id="command"),
    pytest.param(("queue", "-w"), r"report queue: --watch never ends; ask without it", id="watch"),
    pytest.param(
        ("explain", "pod", "big", "--nodes", "x"), r"no such option.*--nodes.*", id="wrong option"
    ),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_what_no_page_shows_is_refused(asked: Type, words: tuple[str, ...], message: str) -> None:
    done = asked("report", "--out", "x.html", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert re.fullmatch(f"error: {message}\n", done.stderr), done.stderr
    assert not Path("x.html").exists()


def test_a_record_of_an_attempt_is_refused() -> None:
    with pytest.raises(UsageError, match=r"records of attempts .* are not shown"):
        document_of("explain", {"namespace": "default", "pod": "big", "number": 1})


def test_a_question_without_an_answer_writes_nothing_and_keeps_its_code(asked: Type) -> None:
    done = asked("report", "--out", "x.html", "explain", "pod", "no", "--from", "objects.json")
    assert (done.exit_code, Path("x.html").exists()) == (1, False)
    assert "no" in done.stderr


def test_a_file_that_exists_is_overwritten_on_demand_only(asked: Type) -> None:
    words = ("explain", "pod", "big", "--from", "objects.json")
    Path("x.html").write_text("mine")
    done = asked("report", "--out", "x.html", *words)
    assert (done.exit_code, done.stderr) == (2, "error: x.html exists: --force overwrites it\n")
    assert Path("x.html").read_text() == "mine"
    assert asked("report", "--out", "x.html", "--force", *words).exit_code == 0
    assert Path("x.html").read_text().startswith("<!doctype html>")


def test_a_file_that_cannot_be_written_is_named(asked: Type) -> None:
    done = asked("report", "--out", "no/x.html", "explain", "pod", "big", "--from", "objects.json")
    assert done.exit_code == 2
    assert "cannot write no/x.html: No such file or directory" in done.stderr
