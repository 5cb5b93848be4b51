"""Which cluster each command speaks to: one table of all commands and all sources of a server.

No server runs: the calls of a command are noted by address, and fail. The note of a command and the
addresses that it calls have to agree, so that no answer has two sources.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from click.testing import Result

from moorage.base.errors import TransportError
from moorage.base.running_sandboxes import LockedRecord, SandboxRecord, find, hold, kubeconfig_of
from moorage.cli.cluster_choice import choose_cluster
from moorage.cli.main import main
from moorage.client import kubeconfig as kubeconfig_module
from moorage.client.auth import FixedCredentials, ServerAccess
from moorage.client.http_transport import HttpTransport
from tests.cli.conftest import Type
from tests.cli.test_alike import ASKS_BY_COMMANDS, commands, option

FLAG, VARIABLE, SANDBOX, POD, HOME = (
    f"https://{name}" for name in ("flag", "variable", "sandbox", "pod", "home")
)
HEALTH = "https://health"
CALLS_MOST = 10
MANIFEST = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}'

READING = {
    "get": ("get", "pods"),
    "describe": ("describe", "pod", "a"),
    "top": ("top",),
    "plot": ("plot", "--to", "a.svg"),
    "snapshot save": ("snapshot", "save", "a.json"),
    "time show": ("time", "show"),
    "version": ("version", "--server"),
    "queue": ("queue",),
    "explain": ("explain", "pod", "a"),
    "explain node": ("explain", "object", "node/a"),
    "events": ("events",),
    "logs": ("logs", "a"),
    "explain --thorough": ("explain", "pod", "a", "--thorough"),
    "explain --attempt": ("explain", "pod", "a", "--attempt", "1"),
    "what-if": ("what-if", "--scale", "deployment/a=2"),
    "capacity": ("capacity", "--like", "deployment/a"),
    "dashboard": ("dashboard", "--address", "127.0.0.1:0"),
    "shadow": ("shadow", "--for", "1s"),
    "through a pod's proxy": ("queue", "--scheduler", "kube-system/moorage-0"),
}
WRITING = {
    "apply": ("apply", "-f", "manifest.json"),
    "delete": ("delete", "pod", "a"),
    "cordon": ("cordon", "a"),
    "uncordon": ("uncordon", "a"),
    "drain": ("drain", "a"),
    "scale nodes": ("scale", "nodes", "3"),
    "scale auto": ("scale", "auto", "1:3"),
    "snapshot load": ("snapshot", "load", "manifest.json"),
    "time step": ("time", "step", "5"),
    "time speed": ("time", "speed", "2"),
}
SCHEDULERS_ONLY = ("queue", "explain --attempt")
NEVER_BY_FOLDER = {
    "run": ("run", "--secure-port", "0"),
    "nodes": ("nodes", "--count", "1"),
    "group-controller": ("group-controller",),
}


class Scene(NamedTuple):
    """What a command may find, and what it must say and call."""

    title: str
    calls: frozenset[str]
    sources: frozenset[str]
    sandbox: str = ""
    flags: tuple[str, ...] = ()


def _scene(
    title: str, calls: set[str], *sources: str, sandbox: str = "", flag: bool = False
) -> Any:
    flags = ("--kubeconfig", "flag.yaml") if flag else ()
    return Scene(title, frozenset(calls), frozenset(sources), sandbox, flags)


EVERYTHING = ("variable", "pod", "home")
DEAD = "; the sandbox of this folder does not run any more"
SCENES = {
    "the flag before everything else": _scene(
        f"--kubeconfig flag.yaml, {FLAG}", {FLAG}, *EVERYTHING, sandbox="live", flag=True
    ),
    "KUBECONFIG before a sandbox": _scene(
        f"KUBECONFIG variable.yaml, {VARIABLE}", {VARIABLE}, *EVERYTHING, sandbox="live"
    ),
    "the sandbox before a pod and the home directory": _scene(
        f"the sandbox of this folder, {SANDBOX}",
        {SANDBOX, HEALTH},
        "pod",
        "home",
        sandbox="live",
    ),
    "the sandbox where nothing else is there": _scene(
        f"the sandbox of this folder, {SANDBOX}", {SANDBOX, HEALTH}, sandbox="live"
    ),
    "the one sandbox with a name": _scene(
        f"the sandbox blue of this folder, {SANDBOX}", {SANDBOX, HEALTH}, "home", sandbox="blue"
    ),
    "a pod before the home directory": _scene(
        f"the service account of this pod, {POD}", {POD}, "pod", "home"
    ),
    "the home directory last": _scene(f"~/.kube/config, {HOME}", {HOME}, "home"),
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the addresses that are called; every call fails.

    A command that goes on for ever is ended after some calls.
    """
    found: set[str] = set()
    count = itertools.count()

    def fail(self: HttpTransport, *_: object, **__: object) -> Any:
        found.add(self._access.server)
        if next(count) > CALLS_MOST:
            raise SystemExit(1)
        raise TransportError("no server runs in this test")

    async def request(self: HttpTransport, *_: object, **__: object) -> Any:
        fail(self)

    monkeypatch.setattr(HttpTransport, "request", request)
    monkeypatch.setattr(HttpTransport, "stream", fail)
    monkeypatch.setattr("moorage.cli.session._RECORD_SECONDS", 0.0)
    return found


Prepare = Callable[[Scene], None]


@pytest.fixture
def prepared(bare: Type, monkeypatch: pytest.MonkeyPatch) -> Iterator[Prepare]:
    """Return a function that puts the sources of a scene into the current folder."""
    held: list[LockedRecord] = []

    def prepare(scene: Scene) -> None:
        Path("manifest.json").write_text(MANIFEST)
        _kubeconfig(Path("flag.yaml"), FLAG)
        if "variable" in scene.sources:
            _kubeconfig(Path("variable.yaml"), VARIABLE)
            monkeypatch.setenv("KUBECONFIG", "variable.yaml")
        if "home" in scene.sources:
            _kubeconfig(Path(".kube/config"), HOME)
        if "pod" in scene.sources:
            inside = ServerAccess(POD, FixedCredentials())
            monkeypatch.setattr(kubeconfig_module, "incluster_access", lambda *_, **__: inside)
        held.extend(_sandboxes(scene.sandbox))

    yield prepare
    for each in held:
        each.release()


def _sandboxes(wanted: str) -> Iterator[LockedRecord]:
    if not wanted:
        return
    name = "" if wanted in {"live", "dead"} else wanted
    record = _record(name)
    if wanted == "dead":
        file = Path(record.kubeconfig)
        file.with_name(f"{file.name}-sandbox.json").write_bytes(msgspec.json.encode(record))
        return
    yield hold(record)


def _record(name: str = "", kubeconfig: Path | None = None) -> SandboxRecord:
    path = kubeconfig or kubeconfig_of(name)
    _kubeconfig(path, SANDBOX)
    return SandboxRecord(
        name=name,
        process=1,
        kubeconfig=str(path.resolve()),
        state="ready",
        url=SANDBOX,
        health=HEALTH,
    )


def _kubeconfig(path: Path, server: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    name = server.removeprefix("https://")
    found = {
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "users": [{"name": name, "user": {}}],
    }
    path.write_bytes(msgspec.json.encode(found))


def _notes(result: Result) -> list[str]:
    start = "note: cluster: "
    return [line.removeprefix(start) for line in result.stderr.splitlines() if start in line]


@pytest.mark.parametrize(
    ("command", "scene"),
    [
        pytest.param(command, scene, id=f"{command}, {name}")
        for command in (*READING, *WRITING)
        for name, scene in SCENES.items()
        # The page of a sandbox calls nothing until a browser comes.
        if not (command == "dashboard" and HEALTH in scene.calls)
    ],
)
def test_a_command_speaks_to(
    command: str, scene: Scene, bare: Type, prepared: Prepare, calls: set[str]
) -> None:
    prepared(scene)
    words = {**READING, **WRITING}[command]
    result = bare(*words, *scene.flags)
    assert _notes(result) == [scene.title]
    assert calls <= scene.calls
    assert calls or command in SCHEDULERS_ONLY, "something is called"
    assert result.exit_code == 1, result.output


def test_every_command_that_speaks_to_a_server_is_in_the_tables() -> None:
    tables = (READING, WRITING, NEVER_BY_FOLDER)
    known = {" ".join(words) for table in tables for words in table.values()}
    missing = [
        " ".join(path[1:])
        for path, command in commands(main, ("moorage",))
        if option(command, "--context")
        and " ".join(path) != ASKS_BY_COMMANDS
        and not any(f"{each} ".startswith(" ".join(path[1:]) + " ") for each in known)
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("words", "sources"),
    [
        pytest.param(words, sources, id=f"{name}, {'with' if sources else 'without'} another")
        for name, words in WRITING.items()
        for sources in ((), ("pod", "home"))
    ],
)
def test_a_command_that_writes_refuses_where_the_sandbox_was_killed(
    words: tuple[str, ...],
    sources: tuple[str, ...],
    bare: Type,
    prepared: Prepare,
    calls: set[str],
) -> None:
    prepared(_scene("", set(), *sources, sandbox="dead"))
    result = bare(*words)
    assert (result.exit_code, calls) == (2, set())
    assert result.stderr == (
        "error: the sandbox of this folder does not run any more, and this command writes: "
        "`moorage up -d` starts it again, `moorage down` forgets it, --kubeconfig FILE names "
        "another cluster\n"
    )


@pytest.mark.parametrize("words", [pytest.param(each, id=name) for name, each in READING.items()])
def test_a_command_that_reads_says_that_the_sandbox_was_killed(
    words: tuple[str, ...], bare: Type, prepared: Prepare, calls: set[str]
) -> None:
    prepared(_scene("", set(), "home", sandbox="dead"))
    assert _notes(bare(*words)) == [f"~/.kube/config, {HOME}{DEAD}"]
    assert calls <= {HOME}


@pytest.mark.parametrize("words", [pytest.param(each, id=name) for name, each in WRITING.items()])
@pytest.mark.parametrize("sandbox", ["live", "dead"])
def test_the_flag_allows_to_write_elsewhere(
    words: tuple[str, ...], sandbox: str, bare: Type, prepared: Prepare, calls: set[str]
) -> None:
    prepared(_scene("", set(), sandbox=sandbox))
    assert bare(*words, "--kubeconfig", "flag.yaml").exit_code == 1
    assert calls == {FLAG}


@pytest.mark.parametrize("words", [pytest.param(each, id=name) for name, each in WRITING.items()])
def test_the_variable_allows_to_write_where_the_sandbox_was_killed(
    words: tuple[str, ...], bare: Type, prepared: Prepare, calls: set[str]
) -> None:
    prepared(_scene("", set(), *EVERYTHING, sandbox="dead"))
    result = bare(*words)
    assert (result.exit_code, calls) == (1, {VARIABLE})
    assert _notes(result) == [f"KUBECONFIG variable.yaml, {VARIABLE}"]


@pytest.mark.parametrize("sandbox", ["live", "dead"])
@pytest.mark.parametrize(
    "words", [pytest.param(each, id=name) for name, each in NEVER_BY_FOLDER.items()]
)
def test_no_sandbox_is_chosen_by_folder_for(
    words: tuple[str, ...], sandbox: str, bare: Type, prepared: Prepare, calls: set[str]
) -> None:
    prepared(_scene("", set(), sandbox=sandbox))
    result = bare(*words)
    assert (result.exit_code, calls) == (2, set())
    assert "no API server to talk to: there is no" in result.stderr


@pytest.mark.parametrize(
    ("context", "server"),
    [
        pytest.param("sandbox", SANDBOX, id="of the sandbox's kubeconfig"),
        pytest.param("home", HOME, id="of the user's own kubeconfig"),
    ],
)
def test_a_context_names_a_kubeconfig(
    context: str, server: str, bare: Type, prepared: Prepare, calls: set[str]
) -> None:
    prepared(_scene("", set(), "home", "pod", sandbox="live"))
    assert bare("get", "pods", "--context", context).exit_code == 1
    assert calls == {server}


def test_of_a_list_of_kubeconfigs_the_address_says_which_sandbox_is_meant(
    bare: Type, prepared: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(_scene("", set(), sandbox="live"))
    monkeypatch.setenv("KUBECONFIG", f"{kubeconfig_of('')}:flag.yaml")
    assert choose_cluster().sandbox is not None
    assert choose_cluster(context="flag").sandbox is None, "the second file's server is no sandbox"


def test_a_variable_that_names_no_file_is_no_reason_to_look_elsewhere(
    bare: Type, prepared: Prepare, calls: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(_scene("", set(), "home", sandbox="live"))
    monkeypatch.setenv("KUBECONFIG", "nowhere.yaml")
    result = bare("get", "pods")
    assert (result.exit_code, calls) == (2, set())
    assert "KUBECONFIG names nowhere.yaml, which is not there" in result.stderr


def test_among_several_sandboxes_with_names_none_is_chosen(
    bare: Type, prepared: Prepare, calls: set[str]
) -> None:
    prepared(_scene("", set(), "home", sandbox="blue"))
    with hold(_record("green")):
        result = bare("get", "pods")
    assert (result.exit_code, calls) == (2, set())
    assert "several sandboxes run in this folder: blue, green; choose one with" in result.stderr


def test_a_sandbox_is_found_by_its_name_where_its_kubeconfig_is_elsewhere(
    bare: Type, prepared: Prepare, calls: set[str]
) -> None:
    prepared(_scene("", set(), "home"))
    record = _record("blue", Path("elsewhere.yaml"))
    with hold(record):
        assert _notes(bare("get", "pods")) == [f"the sandbox blue of this folder, {SANDBOX}"]
        assert find(kubeconfig_of("blue")) == record, "for status, wait and down"
    assert bare("status", "--name", "blue").exit_code == 1, "nothing is left behind"


def test_down_forgets_a_sandbox_that_was_killed(
    bare: Type, prepared: Prepare, calls: set[str]
) -> None:
    prepared(_scene("", set(), "home", sandbox="dead"))
    result = bare("down")
    assert (result.exit_code, result.stderr) == (
        0,
        "note: the sandbox had ended already: its record is removed\n",
    )
    assert bare("delete", "pod", "a").exit_code == 1
    assert calls == {HOME}
