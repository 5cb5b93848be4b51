"""Credentials from a program: what it is told, what it may answer, when it runs again.

The programs are small Python scripts; they run for real.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from moorage.base.clock import ManualClock
from moorage.base.errors import KubeconfigError
from moorage.client.auth import Credential
from moorage.client.exec_credential import (
    ExecCluster,
    ExecConfig,
    ExecCredentials,
    ExecVariable,
)

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


def answer(version: str = V1, **status: Any) -> str:
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})


def program(tmp_path: Path, text: str, *, code: int = 0) -> list[str]:
    """Write a program that counts its runs, keeps what it was told, and prints a text."""
    script = tmp_path / "plugin.py"
    script.write_text(
        "import os, sys, pathlib\n"
        f"here = pathlib.Path({str(tmp_path)!r})\n"
        "with (here / 'runs').open('a') as runs: runs.write('.')\n"
        "(here / 'told').write_text(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "(here / 'extra').write_text(os.environ.get('EXTRA', ''))\n"
        f"print({text!r})\n"
        f"print('something is wrong', file=sys.stderr)\n"
        f"sys.exit({code})\n"
    )
    return [str(script)]


def source(
    tmp_path: Path, args: list[str], *, clock: ManualClock | None = None, **more: Any
) -> ExecCredentials:
    fields = {"api_version": V1, "interactive_mode": "Never", "command": sys.executable}
    return ExecCredentials(
        ExecConfig(**{**fields, "args": args, **more}),
        cluster=ExecCluster(
            server="https://host",
            certificate_authority_data=base64.b64encode(b"CA").decode(),
            config={"audience": "x"},
        ),
        directory=tmp_path,
        what='config: user "u"',
        base=Credential(headers=(("Impersonate-User", "jane"),)),
        clock=clock or ManualClock(),
        environ={},
    )


def runs(tmp_path: Path) -> int:
    return len((tmp_path / "runs").read_text())


@pytest.mark.parametrize(
    "version", [pytest.param(V1, id="v1"), pytest.param(V1BETA1, id="v1beta1")]
)
async def test_a_token(tmp_path, version):
    args = program(tmp_path, answer(version, token="abc"))
    credential = await source(tmp_path, args, api_version=version).credential()
    assert credential.headers == (("Impersonate-User", "jane"), ("Authorization", "Bearer abc"))
    told = json.loads((tmp_path / "told").read_text())
    assert told == {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}


async def test_a_certificate(tmp_path):
    args = program(tmp_path, answer(clientCertificateData="CERT", clientKeyData="KEY"))
    credential = await source(tmp_path, args).credential()
    assert (credential.certificate_pem, credential.key_pem) == (b"CERT", b"KEY")


async def test_cluster_information_and_environment_are_handed_over(tmp_path):
    args = program(tmp_path, answer(token="t"))
    await source(
        tmp_path, args, provide_cluster_info=True, env=[ExecVariable("EXTRA", "more")]
    ).credential()
    assert json.loads((tmp_path / "told").read_text())["spec"]["cluster"] == {
        "server": "https://host",
        "certificate-authority-data": "Q0E=",
        "config": {"audience": "x"},
    }
    assert (tmp_path / "extra").read_text() == "more"


async def test_the_program_runs_once_until_its_credential_expires_or_is_refused(tmp_path):
    clock = ManualClock()
    args = program(tmp_path, answer(token="t", expirationTimestamp="2026-01-01T01:00:00Z"))
    credentials = source(tmp_path, args, clock=clock)
    await asyncio.gather(credentials.credential(), credentials.credential())
    clock.advance(3599)
    await credentials.credential()
    counts = [runs(tmp_path)]
    assert credentials.reject() is True
    await credentials.credential()
    counts.append(runs(tmp_path))
    clock.advance(1)
    await credentials.credential()
    counts.append(runs(tmp_path))
    assert counts == [1, 2, 3]


async def test_a_command_with_a_slash_is_relative_to_the_kubeconfig(tmp_path):
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "plugin"
    script.write_text(f"#!{sys.executable}\nprint({answer(token='rel')!r})\n")
    script.chmod(0o755)
    credential = await source(tmp_path, [], command="bin/plugin").credential()
    assert credential.headers[-1] == ("Authorization", "Bearer rel")


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        pytest.param("{}", 0, "printed nothing , wanted", id="an empty object"),
        pytest.param("nonsense", 0, "printed no ExecCredential", id="no JSON"),
        pytest.param(answer(V1BETA1, token="t"), 0, "printed .*/v1beta1", id="another version"),
        pytest.param(answer(), 0, "gave neither token nor client certificate", id="no token"),
        pytest.param(
            answer(clientCertificateData="C"), 0, "gave only one of", id="certificate without key"
        ),
        pytest.param(
            answer(token="t", expirationTimestamp="soon"), 0, "printed no Exec", id="no such time"
        ),
        pytest.param("", 3, "ended with 3: something is wrong", id="a failing program"),
    ],
)
async def test_answers_that_cannot_be_used(tmp_path, text, code, message):
    with pytest.raises(KubeconfigError, match=f'config: user "u": exec program .*{message}'):
        await source(tmp_path, program(tmp_path, text, code=code)).credential()


async def test_a_missing_program_shows_its_install_hint(tmp_path):
    credentials = source(
        tmp_path, [], command="no-such-plugin", install_hint="get it\nfrom the shop"
    )
    with pytest.raises(KubeconfigError, match=r"cannot be run: No such .*; get it from the shop"):
        await credentials.credential()


async def test_a_program_that_must_talk_needs_a_terminal(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(KubeconfigError, match="standard input is no terminal"):
        await source(tmp_path, [], interactive_mode="Always").credential()
