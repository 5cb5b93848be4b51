"""moorage's own document: beside Kubernetes' in one file, strict like it, and documented."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import msgspec
import pytest

from moorage.base.errors import ConfigError
from moorage.config.load import parse_config
from moorage.config.own import (
    LoadedConfiguration,
    MoorageConfiguration,
    OwnProfile,
    StartEstimates,
    Tracing,
)

KUBE = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
OWN = "apiVersion: moorage.dev/v1alpha1\nkind: MoorageConfiguration\n"
PAGE = Path(__file__).resolve().parents[3] / "docs/reference/configuration-own.md"


def faults_of(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    return list(caught.value.faults)


@pytest.mark.parametrize(
    ("text", "scheduler_names", "compat"),
    [
        pytest.param(KUBE, ["default-scheduler"], "v1.36", id="Kubernetes' document alone"),
        pytest.param(
            OWN + "queueCompat: v1.20\n", ["default-scheduler"], "v1.20", id="moorage's alone"
        ),
        pytest.param(
            f"{KUBE}profiles: [{{schedulerName: a}}]\n---\n{OWN}queueCompat: v1.20\n",
            ["a"],
            "v1.20",
            id="both",
        ),
        pytest.param(
            f"{OWN}queueCompat: v1.20\n---\n{KUBE}profiles: [{{schedulerName: a}}]\n",
            ["a"],
            "v1.20",
            id="both, the other way round",
        ),
        pytest.param(
            f"# two\n---\n{KUBE}---\n# nothing\n---\n{OWN}---\n",
            ["default-scheduler"],
            "v1.36",
            id="empty documents do not count",
        ),
        pytest.param(
            '{"apiVersion": "moorage.dev/v1alpha1", "kind": "MoorageConfiguration", '
            '"queueCompat": "v1.20"}',
            ["default-scheduler"],
            "v1.20",
            id="JSON",
        ),
    ],
)
def test_either_document_may_be_missing_and_their_order_is_free(text, scheduler_names, compat):
    loaded = parse_config(text)
    names = [profile.scheduler_name for profile in loaded.scheduler.profiles]
    assert (names, loaded.own.queue_compat) == (scheduler_names, compat)


def test_unwritten_fields_have_their_defaults():
    assert parse_config(OWN) == LoadedConfiguration()
    assert LoadedConfiguration().own == MoorageConfiguration(
        queue_compat="v1.36", plugin_budget_seconds=1.0, profiles=[]
    )


def test_the_settings_of_a_profile_are_found_by_its_name():
    loaded = parse_config(
        f"{KUBE}profiles: [{{schedulerName: a}}, {{schedulerName: b}}]\n"
        f"---\n{OWN}pluginBudgetSeconds: 3\nprofiles: [{{schedulerName: b, groupMode: trial}}]\n"
    )
    assert loaded.own.plugin_budget_seconds == 3
    assert loaded.own.profile("a") == OwnProfile(scheduler_name="a", group_mode="trial")
    assert loaded.own.profile("b") == OwnProfile(scheduler_name="b", group_mode="trial")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            OWN + "queueCompt: v1.20\n",
            ['MoorageConfiguration: unknown field "queueCompt" (did you mean "queueCompat"?)'],
            id="an unknown field",
        ),
        pytest.param(
            OWN + "queueCompat: v1.27\n",
            [
                'MoorageConfiguration: queueCompat: Unsupported value: "v1.27": '
                'supported values: "v1.20", "v1.36"'
            ],
            id="a queue nobody built",
        ),
        pytest.param(
            OWN + "queueCompat: 1.20\n",
            [
                "MoorageConfiguration: queueCompat: Unsupported value: 1.2: "
                'supported values: "v1.20", "v1.36"'
            ],
            id="a number where a version belongs",
        ),
        pytest.param(
            OWN + "pluginBudgetSeconds: 0\n",
            [
                "MoorageConfiguration: pluginBudgetSeconds: Invalid value: 0.0: "
                "must be a number greater than 0"
            ],
            id="no budget at all",
        ),
        pytest.param(
            OWN + "startEstimates: {keepIn: configMap, learn: true}\n",
            [
                'MoorageConfiguration: startEstimates.keepIn: Invalid value: "configMap": is not '
                "built yet: use file, on a volume that outlives the pod"
            ],
            id="run times in a ConfigMap",
        ),
        pytest.param(
            OWN + "startEstimates: {keepIn: file, answerMilliseconds: 5}\n",
            [
                "MoorageConfiguration: startEstimates.file: Required value: with keepIn file",
                'MoorageConfiguration: startEstimates.keepIn: Invalid value: "file": needs learn '
                "true: nothing is learned",
                "MoorageConfiguration: startEstimates.answerMilliseconds: Invalid value: 5.0: "
                "must be from 10 to 5000",
            ],
            id="run times in no file, and no time for an answer",
        ),
        pytest.param(
            OWN + "startEstimates: {file: /run-times, answerMilliseconds: 5001}\n",
            [
                'MoorageConfiguration: startEstimates.file: Invalid value: "/run-times": needs '
                "keepIn file",
                "MoorageConfiguration: startEstimates.answerMilliseconds: Invalid value: 5001.0: "
                "must be from 10 to 5000",
            ],
            id="a file that nothing is written to",
        ),
        pytest.param(
            OWN + "tracing: {}\n",
            [
                "MoorageConfiguration: tracing.samplingRatePerMillion: Required value: "
                "1000000 traces every attempt"
            ],
            id="traces without a rate",
        ),
        pytest.param(
            OWN + "tracing: {samplingRatePerMillion: 1000001, endpoint: 'ftp://h'}\n",
            [
                "MoorageConfiguration: tracing.samplingRatePerMillion: Invalid value: 1000001: "
                "must be from 0 to 1000000",
                'MoorageConfiguration: tracing.endpoint: Invalid value: "ftp://h": '
                "must be HOST:PORT, or a URL of http or https",
            ],
            id="more attempts than there are, and a collector behind FTP",
        ),
        pytest.param(
            OWN + "tracing: {samplingRatePerMillion: 1, endpoint: 'http://me:secret@h'}\n",
            [
                "MoorageConfiguration: tracing.endpoint: Invalid value: no user or password: "
                "set OTEL_EXPORTER_OTLP_HEADERS in the environment"
            ],
            id="a password in the address, which is not repeated",
        ),
        pytest.param(
            OWN + "pluginBudgetSeconds: .inf\n",
            ["not YAML: line 3, column 22: inf is no number in JSON"],
            id="an endless budget",
        ),
        pytest.param(
            OWN + "pluginBudgetSeconds: 1s\n",
            [
                'MoorageConfiguration: pluginBudgetSeconds: Invalid value: "1s": '
                "expected float, got str"
            ],
            id="a duration where seconds belong",
        ),
        pytest.param(
            OWN + "profiles: [{schedulerName: default-scheduler, holdBackAfterSeconds: -1, "
            "groupMode: permit}]\n",
            [
                "MoorageConfiguration: profiles[0].holdBackAfterSeconds: Invalid value: -1.0: "
                "must be a number of at least 0",
                "MoorageConfiguration: profiles[0].holdBackAfterSeconds: Invalid value: -1.0: "
                "needs groupMode trial: members at Permit hold room",
            ],
            id="room held back after a negative time, and for groups at Permit",
        ),
        pytest.param(
            f'{KUBE}extenders: [{{urlPrefix: "http://127.0.0.1:1", filterVerb: f}}]\n---\n'
            f"{OWN}profiles: [{{schedulerName: default-scheduler, holdBackAfterSeconds: 60}}]\n",
            [
                "MoorageConfiguration: profiles[0].holdBackAfterSeconds: Invalid value: 60.0: "
                "cannot be combined with extenders",
            ],
            id="room held back beside extenders",
        ),
        pytest.param(
            OWN + "profiles: [{}, {schedulerName: nobody}]\n",
            [
                "MoorageConfiguration: profiles[0].schedulerName: Required value",
                'MoorageConfiguration: profiles[1].schedulerName: Not found: "nobody": '
                'the profiles are "default-scheduler"',
            ],
            id="profiles that are not there",
        ),
        pytest.param(
            f"{OWN}profiles: [{{schedulerName: a}}, {{schedulerName: a}}]\n"
            f"---\n{KUBE}profiles: [{{schedulerName: a}}]\n",
            ['MoorageConfiguration: profiles[1].schedulerName: Duplicate value: "a"'],
            id="a profile twice",
        ),
        pytest.param(
            OWN + "profiles: [{schedulerName: default-scheduler, groupOrders: 101}]\n",
            [
                "MoorageConfiguration: profiles[0].groupOrders: Invalid value: 101: "
                "must be from 0 to 100"
            ],
            id="too many orders of a group",
        ),
        pytest.param(
            OWN + "profiles: [{schedulerName: default-scheduler, groupMode: gang}]\n",
            [
                'MoorageConfiguration: profiles[0].groupMode: Unsupported value: "gang": '
                'supported values: "permit", "trial"'
            ],
            id="a mode nobody built",
        ),
        pytest.param(
            f"{OWN}---\n{KUBE}---\n{OWN}",
            ["MoorageConfiguration: Duplicate value: a file holds one of each kind"],
            id="two of one kind",
        ),
        pytest.param(
            OWN.replace("v1alpha1", "v1"),
            [
                "no kind 'MoorageConfiguration' is registered for version 'moorage.dev/v1': "
                "use moorage.dev/v1alpha1"
            ],
            id="a version nobody built",
        ),
        pytest.param(
            f"{KUBE}parallelism: 0\n---\n{OWN}pluginBudgetSeconds: -1\nx: 1\n---\nkind: Pod\n",
            [
                "couldn't decode as KubeSchedulerConfiguration, got apiVersion None and kind "
                "'Pod': expected kubescheduler.config.k8s.io/v1 and KubeSchedulerConfiguration, "
                "or moorage.dev/v1alpha1 and MoorageConfiguration",
                "parallelism: Invalid value: 0: should be an integer value greater than zero",
                'MoorageConfiguration: unknown field "x"',
                "MoorageConfiguration: pluginBudgetSeconds: Invalid value: -1.0: "
                "must be a number greater than 0",
            ],
            id="every fault of every document",
        ),
        pytest.param(
            f"{KUBE}---\n{OWN}queueCompat: v1.20\nqueueCompat: v1.36\n",
            ['line 7: key "queueCompat" already set in map'],
            id="a key given twice",
        ),
    ],
)
def test_every_fault_is_told(text, expected):
    assert faults_of(text) == expected


def test_a_profile_may_let_the_pods_of_a_group_wait_at_permit():
    text = OWN + "profiles: [{schedulerName: default-scheduler, groupMode: permit}]\n"
    own = parse_config(KUBE + "---\n" + text).own
    assert own.profile("default-scheduler").group_mode == "permit"
    assert own.profile("another").group_mode == "trial"


def test_the_reference_page_names_exactly_the_fields_there_are():
    rows = re.findall(r"^\| `([a-zA-Z.\[\]]+)` \|", PAGE.read_text(), flags=re.MULTILINE)
    own = set(MoorageConfiguration.__struct_encode_fields__) - {"apiVersion", "kind", "profiles"}
    own = own - {"tracing"} | {f"tracing.{name}" for name in Tracing.__struct_encode_fields__}
    estimates = StartEstimates.__struct_encode_fields__
    own = own - {"startEstimates"} | {f"startEstimates.{name}" for name in estimates}
    profile = {f"profiles[].{name}" for name in OwnProfile.__struct_encode_fields__}
    assert sorted(rows) == sorted(own | profile)


def test_the_reference_page_shows_each_default_and_choice():
    page = PAGE.read_text()
    rows = dict(re.findall(r"^\| `([a-zA-Z.\[\]]+)` \| (.+?) \|", page, flags=re.MULTILINE))
    assert rows["queueCompat"] == "`v1.36` (default), `v1.20`"
    assert rows["pluginBudgetSeconds"] == "a number greater than 0; default 1"
    assert rows["profiles[].groupMode"] == "`trial` (default), `permit`"
    defaults = MoorageConfiguration()
    assert (defaults.queue_compat, defaults.plugin_budget_seconds) == ("v1.36", 1)
    assert OwnProfile().group_mode == "trial"


def test_the_example_on_the_reference_page_is_valid():
    (example,) = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.M)
    loaded = parse_config(textwrap.dedent(example))
    assert loaded.own.queue_compat == "v1.20"
    assert msgspec.structs.replace(loaded, own=MoorageConfiguration()) != LoadedConfiguration()
