"""How many files of the project a POST of one pod passes: the path that a newcomer has to read.

Covered: the first pod of a new server, from `ApiServer.handle` to its reply, with everything that
is built on first use. Not covered: the connection, the worker thread, and the journal.

``python -m sandbox.tests.apiserver.test_path_of_a_pod`` prints the files in the order of the call.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from types import FrameType

from moorage_sandbox.apiserver.wire.requests import Request
from sandbox.tests.apiserver.harness import ADMIN, PODS, Cluster, pod
from tests import packages

FILES_MOST = 37  # 35 before the manager of its fields was noted
"""Files on the path. Only ever made smaller; it was 63."""


async def files_of_a_post() -> list[str]:
    """Post a pod; return the files of the project in the order in which the call enters them."""
    cluster = Cluster()
    request = Request(
        method="POST",
        path=PODS,
        headers={"content-type": "application/json"},
        body=json.dumps(pod()).encode(),
        user=ADMIN,
    )
    files: dict[str, None] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            files[frame.f_code.co_filename] = None

    sys.setprofile(note)
    reply = await cluster.server.handle(request)
    sys.setprofile(None)
    assert reply.status == 201, reply.body
    sources = tuple(f"{source}/" for source in packages.SOURCES)
    return [name for name in files if name.startswith(sources)]


def test_a_post_of_one_pod_passes_few_files() -> None:
    # In a process of its own, where no other test has built what is built on first use.
    command = [sys.executable, "-m", "sandbox.tests.apiserver.test_path_of_a_pod"]
    done = subprocess.run(command, cwd=packages.ROOT, capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == FILES_MOST, done.stdout


if __name__ == "__main__":
    sys.stdout.write("".join(f"{name}\n" for name in asyncio.run(files_of_a_post())))
