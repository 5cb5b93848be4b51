"""The runner itself: it finds what differs, says what it cannot judge, and counts honestly."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from moorage.base.errors import UsageError
from moorage.cli.main import main
from moorage.framework.cycle_state import CycleState
from moorage.framework.registry import PluginEntry, Registry
from moorage.framework.status import FilterAnswer
from moorage.plugins.in_tree import IN_TREE
from moorage.plugins.nodes.node_name import NodeName
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView
from moorage_lab.conformance.runner import check_recordings

PUBLIC = Path(__file__).parent / "data" / "public"


def lines(family: str) -> Iterator[dict[str, Any]]:
    with gzip.open(PUBLIC / f"{family}.jsonl.gz") as recorded:
        yield from map(json.loads, recorded)


def case(family: str, mode: str = "evaluate") -> dict[str, Any]:
    """Return the first case of a family and mode in which some pod finds several nodes."""
    for line in lines(family):
        rows = line["expected"].get("pods") or line["expected"].get("sequence") or []
        several = [row for row in rows if len(row.get("feasible", ())) > 1 or "node" in row]
        if line["scenario"]["mode"] == mode and several:
            return line
    raise AssertionError(f"{family} has no such case")


def write(folder: Path, *cases: dict[str, Any]) -> Path:
    path = folder / "cases.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in cases))
    return path


def scored(line: dict[str, Any]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = line["expected"]["pods"]
    return next(row for row in rows if len(row.get("feasible", ())) > 1)


def change_score(line):
    row = scored(line)
    row["scores"]["NodeResourcesFit"]["normalized"][1] += 1
    return row["pod"], "scores", "NodeResourcesFit.normalized[1]"


def change_weight(line):
    row = scored(line)
    row["scores"]["TaintToleration"]["weight"] = 4
    return row["pod"], "scores", "TaintToleration.weight"


def drop_score(line):
    row = scored(line)
    del row["scores"]["ImageLocality"]
    return row["pod"], "scores", "ImageLocality"


def change_total(line):
    row = scored(line)
    row["totals"][0] -= 1
    return row["pod"], "totals", "[0]"


def change_winners(line):
    row = scored(line)
    row["winners"] = ["nobody"]
    return row["pod"], "winners", "[0]" if len(row["winners"]) == 1 else ""


def change_feasible(line):
    row = scored(line)
    row["feasible"] = row["feasible"][:-1]
    return row["pod"], "feasible", ""


def change_reason(line):
    row = next(row for row in line["expected"]["pods"] if row.get("filter"))
    node, filter_result = next(iter(row["filter"].items()))
    filter_result["reasons"].append("one more reason")
    return row["pod"], "filter", f"{node}.reasons"


def change_code_of_one_plugin(line):
    row = next(row for row in line["expected"]["pods"] if row.get("filterPlugins"))
    plugin, nodes = next(iter(row["filterPlugins"].items()))
    node, filter_result = next(iter(nodes.items()))
    filter_result["code"] = "Error"
    return row["pod"], "filterPlugins", f"{plugin}.{node}.code"


def change_skipped(line):
    row = scored(line)
    row["preFilter"]["skipped"] = []
    return row["pod"], "preFilter", "skipped"


def add_field(line):
    row = scored(line)
    row["filterExcluded"] = ["n00"]
    return row["pod"], "filterExcluded", ""


def change_outcome(line):
    row = scored(line)
    row["outcome"] = "gated"
    return row["pod"], "outcome", ""


TAMPERINGS = [
    change_score,
    change_weight,
    drop_score,
    change_total,
    change_winners,
    change_feasible,
    change_reason,
    change_code_of_one_plugin,
    change_skipped,
    add_field,
    change_outcome,
]


@pytest.mark.parametrize("tamper", TAMPERINGS, ids=lambda tamper: tamper.__name__)
def test_a_tampered_expectation_is_found_in_its_field(tamper, tmp_path):
    line = case("noderesources")
    pod, field, place = tamper(line)
    report = check_recordings([write(tmp_path, line)])
    found = [(d.pod, d.field, d.place) for d in report.first_differences]
    assert found == [(pod, field, place)]
    tally = report.families["noderesources"]
    assert (tally.cases, tally.equal, tally.different, tally.unsupported) == (1, 0, 1, 0)
    assert dict(tally.by_field) == {field: 1}


@pytest.mark.parametrize("field", ["node", "total", "feasibleCount", "winners"])
def test_a_tampered_sequence_is_found_in_its_field(field, tmp_path):
    line = case("noderesources", "sequence")
    row = next(row for row in line["expected"]["sequence"] if "node" in row)
    row[field] = ["n", "o"] if field == "winners" else "x"
    report = check_recordings([write(tmp_path, line)])
    assert [(d.pod, d.field) for d in report.first_differences] == [(row["pod"], field)]


def test_a_tampered_message_of_a_sequence_is_found(tmp_path):
    line = next(
        line
        for line in lines("noderesources")
        if any("message" in row for row in line["expected"].get("sequence", ()))
    )
    row = next(row for row in line["expected"]["sequence"] if "message" in row)
    row["message"] += "!"
    report = check_recordings([write(tmp_path, line)])
    (found,) = report.first_differences
    assert (found.pod, found.field, f"{found.got}!") == (row["pod"], "message", found.expected)


def test_a_tampered_profile_is_found(tmp_path):
    line = next(line for line in lines("resourcestrategy") if "profiles" in line["expected"])
    points = next(iter(line["expected"]["profiles"].values()))
    points["score"][0]["weight"] += 1
    (found,) = check_recordings([write(tmp_path, line)]).first_differences
    assert (found.pod, found.field, found.place.rpartition(".")[2]) == ("", "profiles", "weight")


def test_a_missing_row_is_a_difference(tmp_path):
    line = case("noderesources")
    line["expected"]["pods"].pop()
    (found,) = check_recordings([write(tmp_path, line)]).first_differences
    assert (found.pod, found.field) == ("", "pods")


@pytest.mark.parametrize("field", ["event", "preemption"])
def test_tampered_preemption_fields_are_found(tmp_path, field):
    line = next(
        line
        for line in lines("noderesources")
        if any("event" in row for row in line["expected"].get("pods", ()))
    )
    rows = [row for row in line["expected"]["pods"] if "event" in row]
    for row in rows:
        row[field] = "tampered"
    report = check_recordings([write(tmp_path, line)])
    assert report.families["noderesources"].by_field == {field: len(rows)}


WITHOUT = {"disabled": [{"name": "GangScheduling"}]}


def set_mode(line: dict[str, Any]) -> dict[str, Any]:
    line["scenario"]["mode"] = "rehearse"
    return line


def set_gate(line: dict[str, Any]) -> dict[str, Any]:
    line["scenario"]["featureGates"] = {"GangScheduling": True}
    return line


def config(line: dict[str, Any], **settings: Any) -> dict[str, Any]:
    line["scenario"]["config"] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **settings,
    }
    return line


def as_1_37(line: dict[str, Any], profile: dict[str, Any]) -> dict[str, Any]:
    line["scenario"]["emulatedVersion"] = "1.37"
    return config(line, profiles=[profile])


@pytest.mark.parametrize(
    ("change", "needs"),
    [
        pytest.param(set_mode, {"mode rehearse"}, id="a mode that is not built"),
        pytest.param(set_gate, {"feature gate GangScheduling"}, id="a feature gate"),
        pytest.param(
            lambda line: as_1_37(line, {"plugins": {"placementFeasible": WITHOUT}}),
            {"configuration not built"},
            id="a setting that is not built",
        ),
    ],
)
def test_a_case_with_an_unsupported_need_is_reported_as_such(change, needs, tmp_path):
    line = change(case("nodename"))
    report = check_recordings([write(tmp_path, line)])
    tally = report.families["nodename"]
    assert (tally.unsupported, set(tally.needs)) == (1, needs)
    assert report.different == 0


def test_an_exception_in_a_case_makes_the_case_different_and_the_run_goes_on(tmp_path):
    path = write(tmp_path, case("nodename"), case("noderesources"))
    report = check_recordings([path], registry=Registry([]))
    assert report.families["nodename"].different == 1
    assert report.families["noderesources"].different == 1
    first = report.first_differences[0]
    assert (first.field, first.expected) == ("exception", "an answer")
    assert "does not exist" in first.got


class BrokenNodeName(NodeName):
    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        raise RuntimeError("out of order")


def test_a_failing_plugin_is_reported_as_the_outcome_of_its_case(tmp_path, caplog):
    entries = [entry for entry in IN_TREE if entry.name != "NodeName"]
    registry = Registry([*entries, PluginEntry("NodeName", BrokenNodeName)])
    report = check_recordings([write(tmp_path, case("noderesources"))], registry=registry)
    assert {d.field for d in report.first_differences} == {"outcome"}
    got = report.first_differences[0].got
    assert got == 'error: running "NodeName" filter plugin: out of order'
    assert "plugin NodeName failed at Filter" in caplog.text


def test_json_is_counts_by_family_and_nothing_else(tmp_path):
    good, bad, other = case("nodename"), case("nodename"), set_mode(case("nodename"))
    scored(bad)["outcome"] = "gated"
    report = check_recordings([write(tmp_path, good, bad, other)])
    assert report.as_json() == {
        "families": {
            "nodename": {
                "cases": 3,
                "equal": 1,
                "faulty": 0,
                "different": 1,
                "unsupported": 1,
            }
        }
    }


def test_the_table_and_the_first_differences_read_well(tmp_path):
    line = case("nodename")
    row = scored(line)
    row["winners"], row["message"] = ["nobody"], "0/0"
    path = write(tmp_path, line, set_mode(case("nodename")))
    report = check_recordings([path])
    winners = json.dumps(scored(case("nodename"))["winners"])
    assert report.as_text().splitlines() == [
        "family    cases  equal  faulty  different  unsupported  by field",
        "--------  -----  -----  ------  ---------  -----------  --------------------",
        "nodename      2      0       0          1            1  message 1, winners 1",
        "all           2      0       0          1            1",
        "",
        "Not supported, number of cases by need:",
        "       1 mode rehearse",
        "",
        "First differences (1 case differs):",
        f"  {line['scenario']['name']} {row['pod']}: winners",
        '      expected ["nobody"]',
        f"      got      {winners}",
        f"  {line['scenario']['name']} {row['pod']}: message",
        "      expected 0/0",
        "      got      (nothing)",
    ]


def test_exit_code_is_one_when_something_supported_differs(tmp_path):
    def code(*cases: dict[str, Any]) -> int:
        path = write(tmp_path, *cases)
        return CliRunner().invoke(main, ["conformance", str(path), "-o", "json"]).exit_code

    assert code(case("nodename"), set_mode(case("nodename"))) == 0
    bad = case("nodename")
    scored(bad)["outcome"] = "gated"
    assert code(bad) == 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_only(tmp_path):
    path = write(tmp_path, *lines("nodename"))
    terminal, pipe = Terminal(), io.StringIO()
    check_recordings([path], progress=terminal)
    check_recordings([path], progress=pipe)
    assert "10/20 cases" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert pipe.getvalue() == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "no such file or directory", id="a path that is not there"),
        pytest.param(b"{}\n", "line 1 is not a recorded case", id="an object of another kind"),
        pytest.param(b"\n\nhello\n", "line 3 is not a recorded case", id="no JSON"),
        pytest.param(b"\x1f\x8bhello", "cannot be read", id="a broken archive"),
    ],
)
def test_bad_files_are_named(content, message, tmp_path):
    path = tmp_path / "cases.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=message) as caught:
        check_recordings([path])
    assert str(path) in str(caught.value)


def test_a_directory_without_recordings_is_refused(tmp_path):
    with pytest.raises(UsageError, match="holds no recordings"):
        check_recordings([tmp_path])


def test_a_run_without_a_path_is_refused():
    with pytest.raises(UsageError, match="name a file or a directory"):
        check_recordings([])


def test_directories_are_searched_and_files_taken_once(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    path = write(inner, case("nodename"))
    report = check_recordings([tmp_path, path, inner])
    assert report.families["nodename"].cases == 1
