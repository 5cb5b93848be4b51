"""``moorage config``: faults, exit codes, and defaults that mean what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moorage.config.load import parse_config
from moorage.config.merge import expand_profiles
from moorage.config.own import LoadedConfiguration
from moorage.plugins.in_tree import in_tree_registry
from tests.cli.conftest import Type

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
OWN = "---\napiVersion: moorage.dev/v1alpha1\nkind: MoorageConfiguration\n"
PROFILE = "profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: {}}}]}}}}}}]\n"

ARGS = "profiles: [{{pluginConfig: [{{name: {}, args: {{{}}}}}]}}]\n"


def check(bare: Type, text: str, *words: str) -> tuple[int, str, str]:
    Path("file.yaml").write_text(text)
    result = bare("config", "check", "file.yaml", *words)
    return result.exit_code, result.stdout, result.stderr


def test_a_usable_file_is_told_by_the_profiles_it_serves(bare: Type) -> None:
    text = HEAD + "profiles: [{schedulerName: a}, {schedulerName: b}]\n"
    assert check(bare, text) == (0, "file.yaml can be used; it serves a, b\n", "")


def test_every_fault_of_both_documents_is_told_at_once(bare: Type) -> None:
    text = HEAD + "parallelism: 0\nprofile: []\n" + OWN + "queueCompat: v1.5\n"
    code, out, err = check(bare, text)
    assert (code, out) == (2, "")
    assert err.startswith("error: file.yaml: 3 faults in the configuration:\n  - unknown field")
    code, out, err = check(bare, text, "-o", "json")
    found = json.loads(out)
    assert (code, err, found["valid"], len(found["faults"])) == (2, "", False, 3)


def test_unknown_plugins_are_told_beside_every_other_fault(bare: Type) -> None:
    text = HEAD.replace("/v1", "/v1beta1") + PROFILE.format("Unheard") + "parallelism: 0\n"
    text += OWN + "queueCompat: v1.5\n"
    code, out, _ = check(bare, text, "-o", "json", "--plugin", "absent.py:Nothing")
    faults = json.loads(out)["faults"]
    assert code == 2
    assert [fault[:24] for fault in faults] == [
        "no kind 'KubeSchedulerCo",
        "parallelism: Invalid val",
        "MoorageConfiguration: qu",
        "plugin absent.py:Nothing",
        "creating profile for sch",
    ]


BREAKING = """
class Breaking:
    def __init__(self, args, handle):
        raise ValueError(f"{self.name} wants a license")


class First(Breaking):
    name = "First"

    def filter_node(self, state, pod, node):
        return None


class Second(Breaking):
    name = "Second"

    def filter_node(self, state, pod, node):
        return None
"""


@pytest.mark.parametrize("other", ["", "parallelism: 0\n"], ids=["alone", "beside another fault"])
def test_every_plugin_that_cannot_be_constructed_is_told(bare: Type, other: str) -> None:
    Path("breaking.py").write_text(BREAKING)
    words = ("--plugin", "breaking.py:First", "--plugin", "breaking.py:Second", "-o", "json")
    unknown = PROFILE.format("Unheard") if other else ""
    code, out, _ = check(bare, HEAD + unknown + other, *words)
    faults = json.loads(out)["faults"]
    assert code == 2
    creating = "creating profile for scheduler name default-scheduler: "
    expected = [
        f'{creating}initializing plugin "First": First wants a license',
        f'{creating}initializing plugin "Second": Second wants a license',
    ]
    assert faults[-2:] == expected
    assert len(faults) == (4 if other else 2)


def test_a_plugin_whose_arguments_are_at_fault_is_told_of_once(bare: Type) -> None:
    text = HEAD + ARGS.format("NodeResourcesFit", "scoringStrategy: {type: Odd}")
    code, out, _ = check(bare, text, "-o", "json")
    assert code == 2
    assert [fault.partition(":")[0] for fault in json.loads(out)["faults"]] == [
        "profiles[0].pluginConfig[0].args.scoringStrategy.type"
    ]


def test_run_tells_unknown_plugins_beside_every_other_fault(bare: Type) -> None:
    Path("file.yaml").write_text(HEAD + PROFILE.format("Unheard") + "parallelism: 0\n")
    result = bare("run", "--config", "file.yaml", "--kubeconfig", "none")
    assert result.exit_code == 2
    assert "file.yaml: 2 faults" in result.stderr
    assert '"Unheard" does not exist' in result.stderr


def test_json_of_a_usable_file(bare: Type) -> None:
    code, out, _ = check(bare, HEAD, "-o", "json")
    assert (code, json.loads(out)) == (
        0,
        {"file": "file.yaml", "valid": True, "faults": [], "profiles": ["default-scheduler"]},
    )


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        pytest.param(
            HEAD + PROFILE.format("RequestedToCapacityRatio"),
            '"RequestedToCapacityRatio" does not exist: it became a strategy of NodeResourcesFit: '
            "set scoringStrategy.type to RequestedToCapacityRatio in its args",
            id="a plugin that became a strategy",
        ),
        pytest.param(
            HEAD + PROFILE.format("SelectorSpread"),
            '"SelectorSpread" does not exist: PodTopologySpread has its part',
            id="a plugin another one stands for",
        ),
        *(
            pytest.param(
                HEAD + PROFILE.format(name),
                f'"{name}" does not exist: a plugin of scheduler-plugins',
                id=f"{name}, of another project",
            )
            for name in (
                "CrossNodePreemption",
                "LowRiskOverCommitment",
                "NetworkOverhead",
                "Peaks",
                "SySched",
                "TopologicalSort",
            )
        ),
        pytest.param(
            HEAD + PROFILE.format("PodState"),
            '"PodState" does not exist: it is an example of a plugin of your own: '
            "--plugin examples/plugins/pod_state.py:PodState",
            id="a plugin that is an example",
        ),
        pytest.param(
            HEAD + PROFILE.format("Unheard"),
            '"Unheard" does not exist\n',
            id="a name that never was has no advice",
        ),
        pytest.param(
            HEAD.replace("/v1", "/v1beta2"),
            "no kind 'KubeSchedulerConfiguration' is registered for version "
            "'kubescheduler.config.k8s.io/v1beta2': use kubescheduler.config.k8s.io/v1; "
            "what changed since: default weights of",
            id="an older version",
        ),
        pytest.param(
            HEAD.replace("/v1", "/v1alpha2"),
            "what changed since: the plugins of Policy files and the point unreserve are gone; "
            "the plugins NodeResourcesLeastAllocated, NodeResourcesMostAllocated and "
            "RequestedToCapacityRatio became strategies of NodeResourcesFit; default weights of "
            "InterPodAffinity (2), NodeAffinity (2) and TaintToleration (3) are higher, "
            "healthzBindAddress and metricsBindAddress became flags; SelectorSpread is gone, "
            "PodTopologySpread has its part; `moorage config convert FILE` writes the file anew",
            id="a much older version: the advice of every version since",
        ),
        pytest.param(
            HEAD + PROFILE.format("LeastRequestedPriority"),
            '"LeastRequestedPriority" does not exist: a priority of the Policy file; '
            "NodeResourcesFit, with scoringStrategy.type LeastAllocated in its args, has its part",
            id="a priority of a policy file",
        ),
        pytest.param(
            HEAD + PROFILE.format("NodeSelector"),
            '"NodeSelector" does not exist: a predicate of the Policy file; NodeAffinity has its',
            id="a predicate of a policy file",
        ),
        pytest.param(
            HEAD + ARGS.format("NodeResourcesFit", "resourcetoweightmap: {cpu: 1}"),
            'args.resourcetoweightmap": it is resources, a list of name and weight, in the '
            "scoringStrategy of NodeResourcesFit",
            id="an argument that became part of a strategy",
        ),
        pytest.param(
            HEAD + ARGS.format("Coscheduling", "podGroupGCIntervalSeconds: 30"),
            'args.podGroupGCIntervalSeconds": groups are forgotten when their last pod is gone',
            id="an argument without a meaning today",
        ),
        pytest.param(
            HEAD + "profiles: [{plugins: {queueSort: {enabled: [{name: QOSSort}]}}}]\n",
            "but got 2: disable PrioritySort at queueSort of the profile",
            id="a second queue sort plugin",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Policy\npredicates: []\n",
            "the Policy file went with Kubernetes 1.23",
            id="a policy file",
        ),
        pytest.param(
            HEAD + "healthzBindAddress: 0.0.0.0:10251\n",
            'unknown field "healthzBindAddress": the flags --bind-address and --secure-port say',
            id="a field that became a flag",
        ),
    ],
)
def test_names_of_the_past_are_told_with_what_took_their_place(
    bare: Type, text: str, advice: str
) -> None:
    code, _, err = check(bare, text)
    assert code == 2
    assert advice in err


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_the_defaults_printed_mean_the_same_as_no_file(bare: Type, form: str) -> None:
    result = bare("config", "defaults", "-o", form)
    assert result.exit_code == 0
    text = result.stdout
    if form == "json":
        text = "\n---\n".join(json.dumps(each) for each in json.loads(text))
    read, default = parse_config(text), LoadedConfiguration()
    registry = in_tree_registry()
    assert expand_profiles(read.scheduler, registry) == expand_profiles(default.scheduler, registry)
    assert read.own == default.own
    for field in default.scheduler.__struct_fields__:
        if field != "profiles":
            assert getattr(read.scheduler, field) == getattr(default.scheduler, field), field


def test_the_defaults_printed_spell_plugins_and_arguments_out(bare: Type) -> None:
    text = bare("config", "defaults").stdout
    for line in ("leaderElect: true", "name: TaintToleration", "kind: InterPodAffinityArgs"):
        assert line in text


SHELF = """
class Shelf:
    name = "Shelf"

    def filter(self, state, pod, view):
        return None
"""
OLD_FILE = """apiVersion: kubescheduler.config.k8s.io/v1beta2
kind: KubeSchedulerConfiguration
metricsBindAddress: ""
profiles:
- plugins: {queueSort: {enabled: [{name: QOSSort}]}, score: {disabled: [{name: "*"}]}}
"""
NEW_FILE = """# Written by `moorage config convert` from old.yaml.
# Dropped:
#   - metricsBindAddress: "": the flags --bind-address and --secure-port say where to listen
# Changed:
#   - profiles[0].plugins.queueSort: PrioritySort is disabled: a queue has one order
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    queueSort:
      enabled:
      - name: QOSSort
      disabled:
      - name: PrioritySort
    score:
      disabled:
      - name: '*'
"""


def test_a_converted_file_tells_in_comments_what_was_dropped_and_changed(bare: Type) -> None:
    Path("old.yaml").write_text(OLD_FILE)
    result = bare("config", "convert", "old.yaml")
    assert (result.exit_code, result.stdout, result.stderr) == (0, NEW_FILE, "")
    assert check(bare, result.stdout)[0] == 0


def test_a_conversion_in_json_has_documents_and_remarks(bare: Type) -> None:
    Path("old.yaml").write_text(OLD_FILE)
    found = json.loads(bare("config", "convert", "old.yaml", "-o", "json").stdout)
    assert [document["kind"] for document in found["documents"]] == ["KubeSchedulerConfiguration"]
    assert [each["kind"] for each in found["remarks"]] == ["dropped", "changed"]


def test_faults_of_its_own_that_an_old_file_keeps_are_told_with_exit_code_2(bare: Type) -> None:
    Path("old.yaml").write_text(OLD_FILE + "parallelism: 0\n")
    result = bare("config", "convert", "old.yaml")
    assert (result.exit_code, "parallelism: 0" in result.stdout) == (2, True)
    assert result.stderr == (
        "error: the output still has a fault: parallelism: Invalid value: 0: "
        "should be an integer value greater than zero\n"
    )


def test_a_conversion_knows_the_plugins_of_installed_packages(
    bare: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are known to `moorage config check`, and a conversion is checked as it does."""
    (tmp_path / "shelf.py").write_text(SHELF)
    about = tmp_path / "shelf-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[moorage.plugins]\nShelf = shelf:Shelf\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("old.yaml").write_text(
        OLD_FILE.replace(
            "[{name: QOSSort}]}", "[{name: QOSSort}]}, filter: {enabled: [{name: Shelf}]}"
        )
    )
    result = bare("config", "convert", "old.yaml")
    assert (result.exit_code, result.stderr) == (0, "")
    assert check(bare, result.stdout)[0] == 0


@pytest.mark.parametrize(
    ("words", "error"),
    [
        pytest.param([], "give either a configuration file or flags", id="nothing to convert"),
        pytest.param(
            ["old.yaml", "--scheduler-name", "a"],
            "give either a configuration file or flags",
            id="a file and flags",
        ),
        pytest.param(["old.yaml"], "old.yaml: cannot read the file", id="no such file"),
        pytest.param(
            ["--algorithm-provider", "Best"],
            "no algorithm provider 'Best': kube-scheduler had DefaultProvider and",
            id="no such provider",
        ),
    ],
)
def test_conversions_that_cannot_be_made(bare: Type, words: list[str], error: str) -> None:
    result = bare("config", "convert", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert error in result.stderr


def test_run_points_from_a_flag_of_the_past_to_convert(bare: Type) -> None:
    result = bare("run", "--policy-config-file=policy.cfg")
    assert result.exit_code == 2
    assert "`moorage config convert --policy-config-file ...` writes a file" in result.stderr
