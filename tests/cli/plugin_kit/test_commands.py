"""``moorage plugin new`` and ``test``: every template works, and exit codes tell of breaches.

Left out: the checks themselves (``sandbox/tests/testing/test_contract.py``).
"""

from __future__ import annotations

import importlib.util
import json
from functools import partial
from pathlib import Path

import pytest

from moorage.framework.loading import load_plugin, references_in
from moorage.framework.registry import POINT_METHODS
from moorage_sandbox.cli.plugin_kit.templates import SAMPLES
from moorage_sandbox.testing import check_contract
from tests.cli.conftest import Type

BROKEN = """
from moorage import plugin

@plugin.score
def too_good(pod, node):
    return 1000
"""

REQUIRING = """
import msgspec

class Args(msgspec.Struct):
    power: str

class Requiring:
    args_type = Args

    def __init__(self, args):
        self.power = args.power

    def score_node(self, state, pod, node):
        return 100
"""


# The twenty clusters of a contract's check take two seconds for each template.
PLAYED_AS_WRITTEN = ("filter", "score")


def test_there_is_a_template_for_every_extension_point_of_pods() -> None:
    of_groups = ("placement", "podGroup")
    assert [*SAMPLES] == [point for point in POINT_METHODS if not point.startswith(of_groups)]


@pytest.mark.parametrize("point", [*SAMPLES])
def test_a_new_plugin_extends_its_point_and_its_test_passes(bare: Type, point: str) -> None:
    result = bare("plugin", "new", "MyRule", "--point", point)
    assert (result.exit_code, result.stdout) == (
        0,
        "wrote my_rule.py\nwrote test_my_rule.py\nnext: moorage plugin test my_rule.py\n",
    )
    [reference] = references_in(Path("my_rule.py"))
    entry = load_plugin(reference)
    assert (entry.name, entry.extends(point)) == ("MyRule", True)
    spec = importlib.util.spec_from_file_location("test_my_rule", Path("test_my_rule.py").resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if point not in PLAYED_AS_WRITTEN:
        vars(module)["check_contract"] = partial(check_contract, clusters=4)
    tests = [value for name, value in vars(module).items() if name.startswith("test_")]
    for each in tests:
        each()
    assert len(tests) == (2 if SAMPLES[point].test else 1)


def test_files_that_exist_are_not_overwritten(bare: Type) -> None:
    Path("test_my_rule.py").write_text("mine")
    result = bare("plugin", "new", "my-rule", "--point", "score")
    assert result.exit_code == 2
    assert result.stderr == "error: test_my_rule.py exists already; choose another name\n"
    assert [path.name for path in Path().glob("*my_rule*")] == ["test_my_rule.py"]


def test_a_name_with_other_characters_is_refused(bare: Type) -> None:
    result = bare("plugin", "new", "../rule", "--point", "score")
    assert (result.exit_code, "is no name of a plugin" in result.stderr) == (2, True)


def test_a_breach_is_told_with_exit_code_1(bare: Type) -> None:
    Path("broken.py").write_text(BROKEN)
    result = bare("plugin", "test", "broken.py", "--clusters", "2")
    lines = result.stdout.splitlines()
    assert result.exit_code == 1
    assert lines[0].startswith("TooGood (broken.py:too_good): 2 clusters, ")
    assert lines[1] == "  FAULT  every answer is allowed"
    assert "invalid score 1000" in lines[2]


_SKIPS = """
from moorage import plugin

class Skips:
    def pre_filter(self, state, pod, snapshot):
        return plugin.SKIP

    def filter_node(self, state, pod, node):
        return True
"""


def test_a_check_says_nothing_of_a_filter_that_was_never_asked(bare: Type) -> None:
    Path("skips.py").write_text(_SKIPS)
    result = bare("plugin", "test", "skips.py:Skips", "--clusters", "2")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1:8] == [
        "  open   every answer is allowed",
        "  open   the same question has the same answer",
        "  open   pods and nodes are left unchanged",
        "  open   decisions are the same with reused answers",
        "  open   no call takes longer than it may",
        "  ok     the points after a decision work",
        "  Filter: never called, as no pod came to it; test it with a StillCluster",
    ]


def test_the_report_in_json_has_faults_and_times(bare: Type) -> None:
    Path("broken.py").write_text(BROKEN)
    result = bare("plugin", "test", "broken.py:too_good", "--clusters", "2", "-o", "json")
    [report] = json.loads(result.stdout)
    assert (result.exit_code, report["plugin"], report["clusters"]) == (1, "TooGood", 2)
    assert {fault["check"] for fault in report["faults"]} >= {"answers", "binding"}
    assert [each["point"] for each in report["times"]] == ["Score"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        pytest.param(["absent.py"], "there is no file absent.py", id="no such file"),
        pytest.param(["empty.py"], "empty.py defines no plugin", id="a file without plugins"),
        pytest.param(["broken.py", "--args", "[]"], "expected an object", id="arguments as a list"),
        pytest.param(["broken.py", "--args", "{"], "--args: not JSON", id="arguments cut short"),
        pytest.param(
            ["requiring.py"],
            "args.power: Required value; pluginConfig has no entry for the plugin; --args gives",
            id="a required argument is missing",
        ),
    ],
)
def test_untestable_plugins_are_refused(bare: Type, words: list[str], error: str) -> None:
    Path("empty.py").write_text("import json\n")
    Path("broken.py").write_text(BROKEN)
    Path("requiring.py").write_text(REQUIRING)
    result = bare("plugin", "test", *words)
    assert (result.exit_code, error in result.stderr) == (2, True)
