"""Cases of upstream's table tests are answered alike: every file, and how many it has.

Not covered: tests of upstream that were not transcribed; the README of the data says which cases
of a transcribed test are left out.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moorage_lab.conformance.recordings import read_cases
from moorage_lab.conformance.runner import check_recordings
from tools.pages import conformance_table

FOLDER = Path(__file__).parent / "data" / "upstream"
FILES = sorted(FOLDER.glob("*.jsonl"))
NUMBERS = {
    "arguments.validation_pluginargs_test": 55,
    "defaultpreemption.default_preemption_test": 25,
    "dynamicresources.allocator_testing": 129,
    "dynamicresources.compile_test": 32,
    "dynamicresources.consumable_capacity_test": 25,
    "dynamicresources.dynamicresources_test": 62,
    "dynamicresources.resourceclaim_test": 7,
    "events.events_test": 31,
    "gangscheduling.gangscheduling_test": 40,
    "groupcycle.algorithm_podgroup_test": 41,
    "grouppreemption.manager_test": 10,
    "grouppreemption.podgrouppreemption_test": 35,
    "grouppreemption.types_test": 10,
    "grouppreemption.util_test": 38,
    "imagelocality.image_locality_test": 7,
    "interpodaffinity.filtering_test": 44,
    "interpodaffinity.plugin_test": 25,
    "interpodaffinity.scoring_test": 28,
    "members.types_test": 21,
    "nodeaffinity.node_affinity_test": 44,
    "nodeaffinity.nodeaffinity_test": 29,
    "nodedeclaredfeatures.nodedeclaredfeatures_test": 3,
    "nodename.node_name_test": 3,
    "nodeorder.node_tree_test": 9,
    "nodeports.node_ports_test": 17,
    "noderesources.balanced_allocation_test": 9,
    "noderesources.fit_test": 95,
    "noderesources.least_allocated_test": 11,
    "noderesources.most_allocated_test": 10,
    "noderesources.requested_to_capacity_ratio_test": 11,
    "nodeunschedulable.node_unschedulable_test": 7,
    "nodevolumelimits.csi_test": 47,
    "plugins.normalize_score_test": 7,
    "podtopologyspread.filtering_test": 34,
    "podtopologyspread.plugin_test": 33,
    "podtopologyspread.scoring_test": 24,
    "queue.backoff_queue_test": 15,
    "queue.priority_sort_test": 4,
    "queue.scheduling_queue_test": 136,
    "requests.helpers_test": 56,
    "schedulinggates.scheduling_gates_test": 3,
    "tainttoleration.taint_toleration_test": 20,
    "tainttoleration.toleration_test": 6,
    "topologyplacement.topology_placement_test": 9,
    "volumebinding.binder_test": 116,
    "volumebinding.scorer_test": 18,
    "volumebinding.volume_binding_test": 15,
    "volumerestrictions.volume_restrictions_test": 22,
    "volumezone.volume_zone_test": 35,
}
"""Cases of each file. A number may only grow."""


def test_every_file_has_its_number():
    assert {path.stem for path in FILES} == set(NUMBERS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_vectors_are_answered_as_upstreams_test_expects(path):
    report = check_recordings([path])
    [tally] = report.families.values()
    assert tally.equal == tally.cases == NUMBERS[path.stem], report.as_text()


def test_the_page_counts_them():
    report = check_recordings([FOLDER])
    page = conformance_table.PAGE.read_text()
    for family, tally in report.families.items():
        assert conformance_table.row(family, tally) in page, "make docs"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_vector_names_its_source_and_runs_as_1_37(path):
    names = []
    for case in read_cases(path):
        vector = case.scenario.vector
        assert vector is not None
        room, file = path.stem.split(".")
        assert vector.file.endswith(f"/{file}.go")
        assert case.scenario.name == f"upstream/{path.stem}/{vector.test}/{vector.case}"
        assert case.scenario.family == f"upstream-{room}"
        assert case.scenario.emulated_version == "1.37"
        assert set(case.expected) == set(vector.points)
        names.append(case.scenario.name)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("point", "other"),
    [
        pytest.param("preFilter", {"status": ["Error"]}, id="another status of PreFilter"),
        pytest.param("filter", {"nowhere": ["Error"]}, id="another status of a node"),
        pytest.param("codes", {"nowhere": "Error"}, id="another code of a node"),
        pytest.param("score", {"nowhere": 1}, id="another score"),
        pytest.param("hint", "Perhaps", id="another hint"),
        pytest.param("allocation", {"nowhere": []}, id="another allocation"),
        pytest.param("error", "another text", id="another error"),
        pytest.param("clusterEvents", ["PodAdd"], id="another cluster event"),
        pytest.param("faults", ["spec"], id="another field at fault"),
        pytest.param("active", ["nobody"], id="another pod in the queue"),
        pytest.param("requests", {"cpu": 1}, id="another request"),
        pytest.param("nodes", {"nobody": "nowhere"}, id="another node of a member"),
        pytest.param("members", {"nobody": "Error"}, id="another code of a member"),
        pytest.param("placementFeasible", ["Error"], id="another answer about a group"),
        pytest.param("order", ["nobody"], id="another order of members"),
        pytest.param("victims", ["nobody"], id="another victim of a group"),
        pytest.param("nominated", {"nobody": "nowhere"}, id="another nomination of a member"),
        pytest.param("ranked", [["nobody"]], id="another rank of a victim"),
        pytest.param("violating", [["nobody"]], id="another victim that a budget protects"),
        pytest.param("fails", "perhaps", id="another end of an attempt"),
        pytest.param("reasons", {"nowhere": ["full"]}, id="another reason of a node"),
        pytest.param("preFilterReasons", ["full"], id="another reason of PreFilter"),
        pytest.param("volumes", {"nowhere": {}}, id="another volume"),
        pytest.param("extended", {"nowhere": {}}, id="another number of devices"),
        pytest.param("placements", {"nowhere": []}, id="another placement"),
        pytest.param("normalized", [1], id="another normalised score"),
        pytest.param("consumedNano", "1", id="another consumed amount"),
        pytest.param("violates", "perhaps", id="another answer about an amount"),
        pytest.param("priorities", {"nobody": 1}, id="another priority of a victim"),
    ],
)
def test_a_vector_that_expects_something_else_differs(tmp_path, point, other):
    lines = (json.loads(line) for path in FILES for line in path.read_text().splitlines())
    line = next(each for each in lines if point in each["expected"])
    line["expected"][point] = other
    changed = tmp_path / "changed.jsonl"
    changed.write_text(json.dumps(line))
    report = check_recordings([changed])
    assert report.different == 1
    assert report.first_differences[0].field == point


def test_a_report_says_that_vectors_are_not_from_a_run():
    note = "Families upstream-*: from upstream's tests, not from a run"
    assert note in check_recordings([FILES[0]]).as_text()
    assert note not in check_recordings([FOLDER.parent / "public/nodename.jsonl.gz"]).as_text()
