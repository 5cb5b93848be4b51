"""kube-scheduler's flags on ``moorage run``: all are known, none is ignored silently.

Left out: what is served (``scheduler/tests/service/test_health``), and who may read it
(``test_access``).
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner

from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.base.errors import ConfigError, UsageError
from moorage.base.rng import Streams
from moorage.cli.run.command import run
from moorage.cli.run.flags import (
    FLAGS,
    Effect,
    RunCommand,
    flags_of,
    kube_scheduler_flags,
    values_in_force,
    warnings,
)
from moorage.cli.run.overrides import with_flags
from moorage.cli.run.scheduler_options import SchedulerOptions
from moorage.cli.run.scheduling import scheduler_access
from moorage.cli.run.serving import Begun, Port, health_server, listening_of
from moorage.config.feature_gates import parse_feature_gates
from moorage.config.load import load_config
from moorage.config.own import LoadedConfiguration, MoorageConfiguration
from moorage.observe.access import AccessFacts
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.core import build_core
from moorage.service.process.health import Listening
from scheduler.tests.service.serving.guards import open_access
from tests.cli.conftest import Type
from tests.cli.run.test_scheduling import kubeconfig

UPSTREAM = Path(__file__).with_name("kube_scheduler_flags.txt")


def typed(*words: str) -> dict[str, Any]:
    """Return what a command with only these flags is given, and its verbosity."""
    seen: dict[str, Any] = {}

    @click.command(cls=RunCommand)
    @click.option("-v", "--verbose", count=True)
    @kube_scheduler_flags
    def command(verbose: int, **flags: Any) -> None:
        seen.update(flags_of(flags))
        if verbose:
            seen["v"] = verbose

    result = CliRunner().invoke(command, list(words), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return seen


def test_the_table_lists_exactly_kube_schedulers_flags() -> None:
    lines = UPSTREAM.read_text().splitlines()
    wanted = [line for line in lines if not line.startswith("#")]
    assert [flag.name for flag in FLAGS] == wanted == sorted(wanted)


def test_the_command_takes_every_flag() -> None:
    taken = {name for parameter in run.params for name in parameter.opts}
    taken |= {"--help", "--v"}  # click's own, and one the command line is rewritten for
    assert [flag.name for flag in FLAGS if f"--{flag.name}" not in taken] == []


@pytest.mark.parametrize(
    ("words", "given"),
    [
        pytest.param((), {}, id="nothing given, nothing changes"),
        pytest.param(("--leader-elect",), {"leader-elect": True}, id="a switch alone is true"),
        pytest.param(
            ("--leader-elect=false", "--secure-port", "0"),
            {"leader-elect": False, "secure-port": 0},
            id="a switch may be given a value",
        ),
        pytest.param(
            ("--feature-gates=A=true", "--feature-gates=B=false"),
            {"feature-gates": "A=true,B=false"},
            id="a list may be given in parts",
        ),
        pytest.param(
            ("--tls-sni-cert-key=a,b:x,y", "--tls-sni-cert-key=c,d"),
            {"tls-sni-cert-key": "a,b:x,y;c,d"},
            id="a list whose parts have commas",
        ),
        pytest.param(("--kube-api-qps=50",), {"kube-api-qps": 50.0}, id="a number"),
        pytest.param(
            ("--leader-elect-lease-duration", "1m30s"),
            {"leader-elect-lease-duration": "1m30s"},
            id="a duration",
        ),
        pytest.param(("-v=2",), {"v": 2}, id="verbosity with an equals sign"),
        pytest.param(("-v", "4"), {"v": 4}, id="verbosity as a word"),
        pytest.param(("--v=5",), {"v": 5}, id="verbosity by its long name"),
        pytest.param(("--v=0",), {}, id="no verbosity"),
        pytest.param(("--v=99",), {"v": 10}, id="there is nothing beyond 10"),
        pytest.param(("-v",), {"v": 2}, id="a letter alone: how each attempt ended"),
        pytest.param(("-v", "-v"), {"v": 5}, id="two letters"),
        pytest.param(("-vvv",), {"v": 10}, id="three letters in one word"),
        pytest.param(
            ("--emulated-version=1.36",),
            {"emulated-version": "1.36"},
            id="a flag that repeats the default",
        ),
    ],
)
def test_flags_are_read_as_go_programs_read_them(
    words: tuple[str, ...], given: dict[str, Any]
) -> None:
    assert typed(*words) == given


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--leader-elect-retry-period", "2"), id="a duration without a unit"),
        pytest.param(("--secure-port=https",), id="a port that is no number"),
        pytest.param(("--unheard-of",), id="a flag that does not exist"),
        pytest.param(("stray",), id="an argument"),
    ],
)
def test_unreadable_flags_are_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(click.UsageError):
        typed(*words)


@pytest.mark.parametrize(
    "flag", [flag for flag in FLAGS if flag.effect is Effect.REFUSED], ids=lambda flag: flag.name
)
def test_refused_flags_are_refused_with_the_reason(flag: Any) -> None:
    value = "1h" if flag.kind == "duration" else "something"
    with pytest.raises(UsageError) as caught:
        typed(f"--{flag.name}={value}")
    assert str(caught.value) == f"--{flag.name}: not supported: {flag.note}"


@pytest.mark.parametrize(
    "flag", [flag for flag in FLAGS if flag.effect is Effect.ACCEPTED], ids=lambda flag: flag.name
)
def test_flags_without_effect_are_warned_of(flag: Any) -> None:
    value = {"bool": "true", "int": "1", "duration": "1s"}.get(flag.kind, "x")
    given = typed(f"--{flag.name}={value}")
    assert list(warnings(given, has_config=False)) == [f"--{flag.name} has no effect: {flag.note}"]


def test_election_flags_override_the_file_and_deprecated_ones_do_not() -> None:
    given = {
        "leader-elect": False,
        "leader-elect-resource-name": "mine",
        "kube-api-qps": 20.0,
        "kube-api-burst": 30,
    }
    with_file = with_flags(LoadedConfiguration(), given, has_config=True).scheduler
    without = with_flags(LoadedConfiguration(), given, has_config=False).scheduler
    assert with_file.leader_election == without.leader_election
    assert (with_file.leader_election.leader_elect, with_file.leader_election.resource_name) == (
        False,
        "mine",
    )
    assert (with_file.client_connection.qps, with_file.client_connection.burst) == (None, None)
    assert (without.client_connection.qps, without.client_connection.burst) == (20.0, 30)
    assert [line.split()[0] for line in warnings(given, has_config=True)] == [
        "--kube-api-burst",
        "--kube-api-qps",
    ]


def test_values_of_flags_are_validated_like_the_file() -> None:
    with pytest.raises(ConfigError, match=r"flags: leaderElection\.leaseDuration: Invalid value"):
        with_flags(LoadedConfiguration(), {"leader-elect-lease-duration": "5s"}, has_config=False)


def test_gates_are_switched_and_unknown_ones_are_faults() -> None:
    config = with_flags(
        LoadedConfiguration(), {"feature-gates": "GenericWorkload=true"}, has_config=False
    )
    assert config.gates.as_text() == "GenericWorkload=true"
    with pytest.raises(ConfigError, match="unrecognized feature gate: Unheard"):
        with_flags(LoadedConfiguration(), {"feature-gates": "Unheard=true"}, has_config=False)


def test_master_names_the_server_in_place_of_the_kubeconfig(tmp_path: Path) -> None:
    options = SchedulerOptions(
        kubeconfig=str(kubeconfig(tmp_path / "k", "http://file")),
        flags={"master": "http://master/"},
    )
    access = scheduler_access(options, LoadedConfiguration().scheduler, ManualClock())
    assert access.server == "http://master"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        pytest.param({}, Listening(address="0.0.0.0", port=10259), id="every address"),
        pytest.param(
            {"bind-address": "::", "secure-port": 1, "permit-port-sharing": True},
            Listening(address="::", port=1, share_port=True),
            id="address, port, and sharing it",
        ),
    ],
)
def test_serving_flags_choose_address_and_port(given: dict[str, Any], wanted: Listening) -> None:
    assert listening_of(given) == wanted


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(
            {"bind-address": "localhost"},
            "--bind-address localhost: must be a valid IP address",
            id="a name for an address",
        ),
        pytest.param(
            {"secure-port": 65536},
            "--secure-port 65536: must be between 0 and 65535",
            id="a port that does not exist",
        ),
    ],
)
def test_an_address_that_cannot_be_listened_on_is_refused(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        listening_of(given)
    assert str(caught.value) == message


def test_flags_are_told_as_they_are_in_force() -> None:
    values = values_in_force({"leader-elect": False, "kube-api-qps": 7.5, "v": 4})
    assert list(values) == [flag.name for flag in FLAGS]
    some = {
        "authorization-always-allow-paths": "[/healthz,/readyz,/livez]",
        "allow-metric-labels": "[]",
        "feature-gates": "",
        "leader-elect": "false",
        "kube-api-qps": "7.5",
        "kube-api-burst": "100",
        "v": "4",
        "leader-elect-lease-duration": "15s",
    }
    assert {name: values[name] for name in some} == some


@pytest.mark.parametrize(
    ("gates", "there"),
    [
        pytest.param("", ["/flagz", "/statusz"], id="unless said otherwise"),
        pytest.param("ComponentFlagz=false", ["/statusz"], id="without the flags"),
        pytest.param("ComponentStatusz=false", ["/flagz"], id="without what runs here"),
    ],
)
async def test_the_pages_about_itself_are_behind_their_gates(gates: str, there: list[str]) -> None:
    known = LoadedConfiguration(gates=parse_feature_gates(gates))
    scheduler: Any = SimpleNamespace(elector=None, core=None)
    port = Port(Listening(), open_access(), AccessFacts())
    server = health_server(port, Begun(scheduler, known), ManualClock(), {}, flags={"v": "0"})
    assert server is not None
    assert [path for path in ("/flagz", "/statusz") if path in server.pages] == there
    if "/statusz" in there:
        told = (await server.pages["/statusz"]("")).body.decode()
        paths = [
            "/configz",
            "/flagz",
            "/healthz",
            "/livez",
            "/metrics",
            "/moorage",
            "/readyz",
            "/version",
        ]
        wanted = [path for path in paths if path != "/flagz" or path in there]
        assert told.splitlines()[-1] == f"Paths: {' '.join(wanted)}"


def test_the_configuration_is_written_and_nothing_is_started(bare: Type) -> None:
    result = bare("run", "--write-config-to", "out.yaml", "--leader-elect=false")
    assert (result.exit_code, result.stdout) == (0, "")
    read = load_config("out.yaml")
    assert read.scheduler.leader_election.leader_elect is False
    assert bare("config", "check", "out.yaml").exit_code == 0


def test_the_version_is_printed_and_nothing_is_started(bare: Type) -> None:
    result = bare("run", "--version")
    assert (result.exit_code, result.stdout.split()[0]) == (0, "moorage")


@pytest.mark.parametrize(
    ("words", "compat", "waits_ns"),
    [
        pytest.param((), "v1.36", 300 * NS_PER_SECOND, id="five minutes"),
        pytest.param((), "v1.20", 60 * NS_PER_SECOND, id="a minute in the older queue"),
        pytest.param(
            ("--pod-max-in-unschedulable-pods-duration=1m30s",),
            "v1.36",
            90 * NS_PER_SECOND,
            id="the duration of the flag",
        ),
        pytest.param(
            ("--pod-max-in-unschedulable-pods-duration=0s",),
            "v1.20",
            0,
            id="in the older queue, too",
        ),
    ],
)
def test_the_wait_of_pods_no_event_helps_is_as_the_flag_says(
    words: tuple[str, ...], compat: Any, waits_ns: int
) -> None:
    own = MoorageConfiguration(queue_compat=compat)
    config = with_flags(LoadedConfiguration(own=own), typed(*words), has_config=False)
    core = build_core(config, in_tree_registry(), clock=ManualClock(), streams=Streams(1))
    assert core.queue.settings.unschedulable_max_ns == waits_ns


def test_a_negative_wait_is_refused() -> None:
    given = {"pod-max-in-unschedulable-pods-duration": "-1s"}
    with pytest.raises(ConfigError, match="must not be negative"):
        with_flags(LoadedConfiguration(), given, has_config=True)
