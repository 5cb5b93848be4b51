"""How the program is started: by module, and with an installation that is not whole."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import moorage

SOURCES = str(Path(moorage.__file__).parents[1])


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


def test_ctrl_c_during_the_imports_ends_the_process_without_a_traceback() -> None:
    code = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "moorage.cli.main":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
from moorage.cli.entry import main
main()
"""
    done = run("-c", code, "version")
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
