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
    assert err.startswith("moorage: file.yaml: 3 faults in the configuration:\n  - unknown field")
    code, out, err = check(bare, text, "-o", "json")
    found = json.loads(out)
    assert (code, err, found["valid"], len(found["faults"])) == (2, "", False, 3)


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
