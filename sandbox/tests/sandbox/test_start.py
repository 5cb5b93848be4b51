"""How a sandbox starts fast: what its processes do not import, and what they have to tell."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from moorage.base.clock import process_age_seconds
from moorage.config.own import LoadedConfiguration
from moorage_sandbox.cli.up.configuration import DEFAULT_NAMES

# Rooms a process has no use for, and libraries that take long to import.
NOT_BEFORE_THE_OTHERS_ARE_STARTED = (
    *("numpy", "aiohttp", "cryptography", "prometheus_client", "yaml", "rich"),
    *(
        "moorage_sandbox.apiserver",
        "moorage.client",
        "moorage_sandbox.controllers",
        "moorage_sandbox.nodeagent.agents",
    ),
    *(
        "moorage_lab.bench",
        # The names of the versions alone take 4 ms, for the help of --emulated-version.
        "moorage.config.load",
        "moorage.config.own",
        "moorage.engine",
        "moorage.plugins",
        "moorage.service",
    ),
    *(
        "moorage_sandbox.sandbox.server",
        "moorage.snapshot",
        "moorage.state",
        "moorage_sandbox.testing",
    ),
)
UNTIL_THE_CHILDREN = """
import sys
from moorage_sandbox.sandbox.processes.parts import ProcessParts

async def start_server(self):
    print(*sys.modules)
    sys.stdout.flush()
    raise SystemExit

ProcessParts.start_server = start_server
from moorage.cli.main import main
main(["up", "--kubeconfig-out", sys.argv[1]])
"""
IMPORTING = "import sys, {}; print(*sys.modules)"


def _modules(code: str, *arguments: str) -> set[str]:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("code", "unwanted", "wanted"),
    [
        pytest.param(
            UNTIL_THE_CHILDREN,
            NOT_BEFORE_THE_OTHERS_ARE_STARTED,
            "moorage_sandbox.sandbox.up",
            id="the parent until it starts the others",
        ),
        pytest.param(
            IMPORTING.format("moorage_sandbox.sandbox.processes.server_process"),
            (
                *("numpy", "prometheus_client", "rich", "click", "moorage.cli", "moorage.engine"),
                *("moorage.plugins", "moorage.service", "moorage.snapshot", "moorage_lab.bench"),
                *("moorage.client.http_transport", "google.protobuf"),
            ),
            "moorage_sandbox.sandbox.server",
            id="server, nodes and controllers",
        ),
        pytest.param(
            IMPORTING.format("moorage_sandbox.cli.up.scheduler_process"),
            (
                *("cryptography", "jsonpatch", "rich", "yaml"),
                *("moorage.explain.explaining", "moorage.explain.workloads.asking"),
                *("moorage_sandbox.controllers", "moorage_sandbox.nodeagent"),
                *(
                    "moorage_sandbox.apiserver",
                    "moorage_lab.bench",
                    "moorage_sandbox.sandbox.server",
                    "moorage_sandbox.cli.up.command",
                ),
            ),
            "moorage.service.scheduler",
            id="the scheduler",
        ),
    ],
)
def test_a_process_imports_only_what_it_needs(tmp_path, code, unwanted, wanted):
    loaded = _modules(code, str(tmp_path / "kubeconfig"))
    assert wanted in loaded
    assert sorted(loaded & set(unwanted)) == []


@pytest.mark.parametrize(
    "process",
    [
        pytest.param(
            "moorage_sandbox.sandbox.processes.server_process", id="server, nodes and controllers"
        ),
        pytest.param("moorage_sandbox.cli.up.scheduler_process", id="the scheduler"),
        pytest.param("moorage_sandbox.sandbox.onlooker", id="the parent's client"),
    ],
)
def test_a_process_starts_without_reading_the_authorities_of_the_machine(process):
    # A context that has not read them wraps its methods, see `moorage.base.authorities`.
    code = (
        f"import {process}; from aiohttp import connector; "
        "print(*vars(connector._SSL_CONTEXT_VERIFIED))"
    )
    assert _modules(code) == {"wrap_bio", "wrap_socket"}


def test_the_default_scheduler_names_equal_the_default_configuration():
    profiles = LoadedConfiguration().scheduler.profiles
    assert frozenset(each.scheduler_name for each in profiles) == DEFAULT_NAMES


def test_the_age_of_a_process_counts_from_its_start():
    code = "from moorage.base.clock import process_age_seconds as age; print(age())"
    before = process_age_seconds()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    after = process_age_seconds()
    # Ticks of a hundredth of a second, cut off.
    assert 0 < json.loads(done.stdout) <= after - before + 0.02
