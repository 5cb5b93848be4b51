"""How the program is started: by module, and with an installation that is not whole."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import moorage

SOURCES = str(Path(moorage.__file__).parents[1])

NOBODY_LISTENS = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://127.0.0.1:9", insecure-skip-tls-verify: true}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
"""


def run(*arguments: str, data: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, input=data, capture_output=True, timeout=60, check=False, text=True
    )


def test_python_dash_m_moorage_is_the_command_line() -> None:
    done = run("-m", "moorage", "version")
    assert done.stdout.startswith(f"moorage {moorage.__version__}\n")


def test_a_dependency_that_is_missing_is_told_in_one_line() -> None:
    code = "import sys; sys.modules['yaml'] = None; from moorage.cli.main import main; main()"
    done = run("-c", code, "apply", "-f", "-", data="a: b")
    assert (done.returncode, done.stderr) == (
        1,
        "error: import of yaml halted; None in sys.modules: the installation lacks a dependency, "
        "`pip check` says which\n",
    )


def test_a_module_of_our_own_that_is_missing_is_no_dependency() -> None:
    code = (
        "import sys; sys.modules['moorage.api.yaml_text'] = None; "
        "from moorage.cli.main import main; main()"
    )
    done = run("-c", code, "apply", "-f", "-", data="a: b")
    assert "Traceback" in done.stderr


def test_little_is_imported_before_ctrl_c_is_seen_to() -> None:
    code = (
        "import sys; before = {*sys.modules}; import moorage.cli.entry; "
        "print(*sorted({*sys.modules} - before))"
    )
    imported = run("-I", "-S", "-c", f"import sys; sys.path.insert(0, {SOURCES!r}); {code}").stdout
    ours = {name for name in imported.split() if name.partition(".")[0] == "moorage"}
    assert ours == {
        "moorage",
        "moorage.base",
        "moorage.base.version",
        "moorage.cli",
        "moorage.cli.entry",
    }
    assert not {"typing", "click", "asyncio"} & {*imported.split()}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(None, "1", id="one thread, for moorage multiplies no matrices"),
        pytest.param("3", "3", id="as many as the environment says"),
    ],
)
def test_numpy_starts_threads(
    monkeypatch: pytest.MonkeyPatch, given: str | None, expected: str
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", given)
    code = (
        "import atexit, os, sys; sys.argv[1:] = ['version']; from moorage.cli.entry import main; "
        "atexit.register(lambda: print(os.environ['OPENBLAS_NUM_THREADS'])); main()"
    )
    assert run("-c", code).stdout.splitlines()[-1] == expected


INTERRUPTS = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            os.kill(os.getpid(), signal.{signal})

class IgnoresExceptions:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            Last()

class Last:
    def __del__(self):
        os.kill(os.getpid(), signal.{signal})

sys.meta_path.insert(0, {finder}())
from moorage.cli.entry import main
main()
"""
"""A process that gets a signal when it begins to import a module."""
COMMAND_LINE = "moorage.cli.main"
SCHEDULER = "moorage.cli.run.scheduling"
BOTH = (signal.SIGINT, signal.SIGTERM)
RUN = ("run", "--secure-port", "0", "--kubeconfig", "nowhere")


@pytest.mark.parametrize("number", BOTH, ids=lambda number: number.name)
@pytest.mark.parametrize("finder", ["Interrupts", "IgnoresExceptions"])
@pytest.mark.parametrize(
    ("words", "module"),
    [
        pytest.param(RUN, COMMAND_LINE, id="run, before the command line is read"),
        pytest.param(RUN, SCHEDULER, id="run, while the scheduler is imported"),
        pytest.param(("up",), COMMAND_LINE, id="up"),
        pytest.param(("nodes", "3"), COMMAND_LINE, id="nodes"),
    ],
)
def test_a_command_that_runs_until_told_is_told_during_its_imports(
    words: tuple[str, ...], module: str, finder: str, number: signal.Signals
) -> None:
    code = INTERRUPTS.format(module=module, signal=number.name, finder=finder)
    done = run("-c", code, *words)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("number", BOTH, ids=lambda number: number.name)
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("version",), id="version"),
        pytest.param((), id="no command"),
        pytest.param(("run", "--write-config-to=f"), id="run, which writes a file"),
        pytest.param(("up", "--nodes", "3", "-d"), id="up in the background"),
        pytest.param(("up", "--exit-when-settled"), id="up until everything is settled"),
        pytest.param(("nodes", "shapes"), id="a list of shapes"),
    ],
)
def test_another_command_was_not_done_when_a_signal_ended_it(
    words: tuple[str, ...], number: signal.Signals
) -> None:
    code = INTERRUPTS.format(module=COMMAND_LINE, signal=number.name, finder="Interrupts")
    done = run("-c", code, *words)
    assert (done.returncode, done.stdout, done.stderr) == (-number, "", "")


@pytest.mark.parametrize("number", BOTH, ids=lambda number: number.name)
@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("before", id="before the loop takes signals"),
        pytest.param("after", id="once the loop takes signals"),
    ],
)
def test_no_signal_is_lost_when_the_loop_takes_signals_over(
    moment: str, number: signal.Signals, tmp_path: Path
) -> None:
    code = f"""
import os, signal
from moorage.base.process import Ending

listen = Ending.listen

def told(self):
    if "{moment}" == "before":
        os.kill(os.getpid(), signal.{number.name})
    listen(self)
    if "{moment}" == "after":
        os.kill(os.getpid(), signal.{number.name})

Ending.listen = told
from moorage.cli.entry import main
main()
"""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(NOBODY_LISTENS, encoding="utf-8")
    done = run("-c", code, *RUN[:-1], str(kubeconfig))
    assert (done.returncode, done.stdout) == (0, "")
    assert "Traceback" not in done.stderr


def test_a_scheduler_told_to_reload_while_it_starts_goes_on() -> None:
    code = INTERRUPTS.format(module=SCHEDULER, signal="SIGHUP", finder="Interrupts")
    done = run("-c", code, *RUN)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nowhere" in done.stderr


def test_a_signal_that_is_ignored_stays_ignored_during_the_imports() -> None:
    ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    code = INTERRUPTS.format(module=COMMAND_LINE, signal="SIGINT", finder="Interrupts")
    done = run("-c", ignoring + code, "version")
    assert done.stdout.startswith(f"moorage {moorage.__version__}\n")
