"""Reading a configuration: what is accepted, and every fault with its text."""

from __future__ import annotations

import textwrap

import pytest

from moorage.base.errors import ConfigError
from moorage.config.defaults import default_config
from moorage.config.load import load_config, parse_config
from moorage.config.plugin_args import NodeResourcesFitArgs, ResourceSpec
from moorage.config.types import LeaderElection

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def faults_of(body: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config(HEAD + textwrap.dedent(body))
    return list(caught.value.faults)


def test_an_empty_configuration_is_the_default_one():
    assert parse_config(HEAD).scheduler == default_config()


def test_json_and_yaml_say_the_same():
    json = (
        '{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",'
        '\t"profiles": [{"schedulerName": "a"}]}'
    )
    assert parse_config(json) == parse_config(HEAD + "profiles: [{schedulerName: a}]\n")


def test_defaults_are_filled_in_where_a_setting_is_unset_or_null():
    config = parse_config(
        HEAD + "profiles: [{}]\nparallelism: null\nenableProfiling: false\n"
    ).scheduler
    assert [profile.scheduler_name for profile in config.profiles] == ["default-scheduler"]
    assert config.parallelism == 16
    assert config.enable_contention_profiling is False
    assert config.leader_election == LeaderElection(leader_elect=True)
    assert config.percentage_of_nodes_to_score is None


def test_arguments_become_the_structs_of_their_plugin():
    config = parse_config(
        HEAD
        + textwrap.dedent("""
        profiles:
        - pluginConfig:
          - name: NodeResourcesFit
            args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu}]}}
          - name: Other
            args: {anything: 1}
        """)
    )
    fit, other = (entry.args for entry in config.scheduler.profiles[0].plugin_config)
    assert isinstance(fit, NodeResourcesFitArgs)
    assert fit.scoring_strategy is not None
    assert fit.scoring_strategy.resources == (ResourceSpec(name="cpu", weight=1),)
    assert other == {"anything": 1}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            "parallelism: 0",
            ["parallelism: Invalid value: 0: should be an integer value greater than zero"],
            id="parallelism must be positive",
        ),
        pytest.param(
            "parallelism: 9223372036854775808",
            ["parallelism: Invalid value: 9223372036854775808: does not fit in 64 bits"],
            id="a number too great",
        ),
        pytest.param(
            "profiles: {schedulerName: a}",
            ['profiles: Invalid value: {"schedulerName":"a"}: expected a list'],
            id="an object where a list belongs",
        ),
        pytest.param(
            "percentageOfNodesToScore: 101",
            ["percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"],
            id="a percentage ends at 100",
        ),
        pytest.param(
            "podInitialBackoffSeconds: 0",
            ["podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"],
            id="initial backoff must be positive",
        ),
        pytest.param(
            "podMaxBackoffSeconds: 0",
            [
                "podMaxBackoffSeconds: Invalid value: 0: "
                "must be greater than or equal to PodInitialBackoffSeconds"
            ],
            id="longest backoff below the initial one",
        ),
        pytest.param(
            "clientConnection: {burst: -1}",
            ["clientConnection.burst: Invalid value: -1: must be non-negative"],
            id="burst below zero",
        ),
        pytest.param(
            "profiles: [{schedulerName: a}, {schedulerName: a}, {}]",
            [
                'profiles[1].schedulerName: Duplicate value: "a"',
                "profiles[2].schedulerName: Required value",
            ],
            id="names of several profiles are given and differ",
        ),
        pytest.param(
            "profiles: [{plugins: {score: {enabled: [{name: EBSLimits}]}}}]",
            [
                'profiles[0].plugins.score.enabled[0]: Invalid value: "EBSLimits": was invalid in '
                'version "kubescheduler.config.k8s.io/v1" (KubeSchedulerConfiguration is version '
                '"kubescheduler.config.k8s.io/v1")'
            ],
            id="a plugin Kubernetes removed",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: NodeName}, {name: NodeName}]}]",
            ['profiles[0].pluginConfig[1]: Duplicate value: "NodeName"'],
            id="arguments given twice",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: NodeAffinity, args: {kind: Other}}]}]",
            [
                'profiles[0].pluginConfig[0].args: Invalid value: {"kind":"Other"}: '
                "has to match plugin args"
            ],
            id="arguments of another kind",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: InterPodAffinity, "
            "args: {hardPodAffinityWeight: 101}}]}]",
            [
                "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: "
                "Invalid value: 101: not in valid range [0, 100]"
            ],
            id="arguments out of range",
        ),
        pytest.param(
            """
            profiles:
            - schedulerName: a
              plugins: {queueSort: {enabled: [{name: A}, {name: B}]}}
            - schedulerName: b
            """,
            [
                "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: "
                "only one queue sort plugin can be enabled",
                'profiles[1].plugins.queueSort: Invalid value: {"enabled":[],"disabled":[]}: '
                "must be the same for all profiles",
            ],
            id="one queue has one order",
        ),
        pytest.param(
            "leaderElection: {leaseDuration: 15}",
            ["leaderElection.leaseDuration: Invalid value: 15: expected str, got int"],
            id="a duration without a unit is a number",
        ),
        pytest.param(
            "leaderElection: {retryPeriod: soon}",
            [
                'leaderElection.retryPeriod: Invalid value: "soon": invalid duration '
                "'soon': write it like 15s or 1m30s"
            ],
            id="a word is no duration",
        ),
        pytest.param(
            "leaderElection: {renewDeadline: 12s, retryPeriod: 10s}",
            [
                'leaderElection.renewDeadline: Invalid value: "12s": '
                "renewDeadline must be greater than retryPeriod*JitterFactor (1.2)"
            ],
            id="there must be time to try twice",
        ),
        pytest.param(
            "leaderElection: {leaseDuration: 900ms, renewDeadline: 500ms, retryPeriod: 100ms}",
            [
                'leaderElection.leaseDuration: Invalid value: "900ms": '
                "must be at least 1s, because a Lease counts whole seconds"
            ],
            id="a lease of no whole second is none",
        ),
    ],
)
def test_faults_are_kubernetes_field_errors(body, expected):
    assert faults_of(body) == expected


def test_leader_election_is_checked_where_it_is_asked_for():
    body = "leaderElection: {leaderElect: true, leaseDuration: 5s, retryPeriod: -1s, "
    faults = faults_of(body + "resourceLock: endpoints}")
    assert faults == [
        'leaderElection.retryPeriod: Invalid value: "-1s": must be greater than zero',
        'leaderElection.leaseDuration: Invalid value: "5s": '
        "LeaseDuration must be greater than RenewDeadline",
        'leaderElection.resourceLock: Invalid value: "endpoints": '
        'resourceLock value must be "leases"',
    ]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("leaseDuration: 0s", id="a lease of no time"),
        pytest.param("renewDeadline: 0s, retryPeriod: 0h0m", id="no deadline and no period"),
        pytest.param("leaderElect: false, leaseDuration: 0s", id="where no leader is elected"),
        pytest.param("resourceName: '', resourceNamespace: ''", id="a lease without a name"),
        pytest.param("resourceLock: ''", id="no kind of lock"),
    ],
)
def test_leader_election_that_is_zero_or_empty_has_its_defaults(body):
    found = parse_config(f"{HEAD}leaderElection: {{{body}}}\n").scheduler.leader_election
    assert found == LeaderElection(leader_elect="false" not in body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            "profiles: [{schedulerName: ''}]",
            ["profiles[0].schedulerName: Required value"],
            id="a name that is written as empty",
        ),
        pytest.param("profiles: [{percentageOfNodesToScore: 5}]", [], id="no name"),
        pytest.param("profiles: [{schedulerName: null}]", [], id="no name, written as null"),
        pytest.param(
            "profiles: [{schedulerName: ''}, {schedulerName: b}]",
            ["profiles[0].schedulerName: Required value"],
            id="an empty name beside another",
        ),
        pytest.param(
            "parallelism: 2147483648",
            ["parallelism: Invalid value: 2147483648: does not fit in 32 bits"],
            id="a number that kube-scheduler cannot decode",
        ),
        pytest.param(
            "profiles: [{plugins: {score: {enabled: [{name: A, weight: 2147483648}]}}}]",
            [
                "profiles[0].plugins.score.enabled[0].weight: Invalid value: 2147483648: "
                "does not fit in 32 bits"
            ],
            id="a weight that kube-scheduler cannot decode",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: "
            "{scoringStrategy: {resources: [{name: cpu}]}}}]}]",
            [
                'profiles[0].pluginConfig[0].args.scoringStrategy.type: Unsupported value: "": '
                'supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
            ],
            id="a scoring strategy without type",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: null}}]}]",
            [],
            id="no scoring strategy",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultingType: ''}}]}]",
            [],
            id="a defaulting type that is empty",
        ),
    ],
)
def test_what_is_left_out_has_defaults_as_upstream(body, expected):
    if expected:
        assert faults_of(body) == expected
    else:
        parse_config(f"{HEAD}{body}\n")


def test_leader_election_that_is_off_may_say_anything_readable():
    config = parse_config(
        HEAD + "leaderElection: {leaderElect: false, leaseDuration: 1s}\n"
    ).scheduler
    assert config.leader_election.lease_duration == "1s"


def test_every_fault_is_told_at_once_unknown_fields_and_types_included():
    assert faults_of("""
        parallelism: many
        profile: []
        profiles:
        - schedulerNam: a
          plugins: {filter: {enabled: [NodeName]}}
          pluginConfig: [{name: NodeResourcesFit, args: {ignored: 1}}]
        podInitialBackoffSeconds: -1
        """) == [
        'parallelism: Invalid value: "many": expected int, got str',
        'unknown field "profile" (did you mean "profiles"?)',
        'unknown field "profiles[0].schedulerNam" (did you mean "schedulerName"?)',
        'profiles[0].plugins.filter.enabled[0]: Invalid value: "NodeName": expected an object',
        'unknown field "profiles[0].pluginConfig[0].args.ignored" '
        '(did you mean "ignoredResources"?)',
        "podInitialBackoffSeconds: Invalid value: -1: must be greater than 0",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "expected an object", id="an empty file"),
        pytest.param("a: [", "not YAML", id="broken YAML"),
        pytest.param(
            HEAD + "---\n" + HEAD, "KubeSchedulerConfiguration: Duplicate value", id="two"
        ),
        pytest.param(
            HEAD + "parallelism: 1\nparallelism: 2\n",
            'line 4: key "parallelism" already set in map',
            id="a key given twice in YAML",
        ),
        pytest.param('{"a": 1, "a": 2}', 'duplicate field "a"', id="a key given twice in JSON"),
        pytest.param(
            "apiVersion: v1\nkind: Pod\n",
            "couldn't decode as KubeSchedulerConfiguration, got apiVersion 'v1' and kind 'Pod'",
            id="another kind",
        ),
        pytest.param(
            HEAD.replace("/v1", "/v1beta3"),
            "no kind 'KubeSchedulerConfiguration' is registered for version "
            "'kubescheduler.config.k8s.io/v1beta3'",
            id="a version that is gone",
        ),
    ],
)
def test_files_without_a_configuration_are_refused(text, expected):
    with pytest.raises(ConfigError) as caught:
        parse_config(text, source="sched.yaml")
    assert expected in str(caught.value)
    assert str(caught.value).startswith("sched.yaml: ")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"missing\.yaml: cannot read the file: No such file"):
        load_config(tmp_path / "missing.yaml")


def test_a_file_is_read(tmp_path):
    path = tmp_path / "sched.yaml"
    path.write_text(HEAD + "parallelism: 3\n")
    assert load_config(path).scheduler.parallelism == 3
