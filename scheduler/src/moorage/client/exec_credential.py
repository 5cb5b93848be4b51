"""Credentials made by a program of the user's choice (``users[].user.exec``).

``kubeconfig`` builds the source; the transport asks it before each call. The program runs only
when there is no credential yet, it expired, or the server refused it, and never twice at once.

Notes
-----
Mirrors kubernetes v1.36 client-go plugin/pkg/client/auth/exec/exec.go, API versions
client.authentication.k8s.io/v1 and v1beta1.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from moorage.base.clock import Clock, parse_rfc3339
from moorage.base.errors import KubeconfigError
from moorage.client.auth import Credential, bearer

_GROUP = "client.authentication.k8s.io"
_VERSIONS = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
_STDERR_CHARS_MAX = 500  # guess: the last words of a failing program, not its whole log


class ExecVariable(msgspec.Struct, frozen=True):
    """An environment variable of ``exec.env``."""

    name: str
    value: str = ""


class ExecConfig(msgspec.Struct, frozen=True, rename="camel"):
    """``users[].user.exec``."""

    command: str = ""
    args: list[str] | None = None
    env: list[ExecVariable] | None = None
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: Literal["", "Never", "IfAvailable", "Always"] = ""


class ExecCluster(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """``ExecCredential.spec.cluster``: the cluster the program is asked for."""

    server: str
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    config: object = None


class _ExecStatus(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None


class _ExecAnswer(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _ExecStatus | None = None


class ExecCredentials:
    """Runs the program and keeps its credential until it expires.

    Parameters
    ----------
    config
        The exec entry.
    cluster
        Given to the program if the entry asks for it.
    directory
        Directory of the kubeconfig: a command with a slash is relative to it.
    what
        File and entry, for messages.
    base
        Headers to send besides the program's credential.
    environ
        Environment the program inherits.
    """

    def __init__(
        self,
        config: ExecConfig,
        *,
        cluster: ExecCluster,
        directory: Path,
        what: str,
        base: Credential,
        clock: Clock,
        environ: Mapping[str, str],
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._directory = directory
        self._what = what
        self._base = base
        self._clock = clock
        self._environ = environ
        self._current: Credential | None = None
        self._expires_ns: int | None = None
        self._running = asyncio.Lock()
        self._check()

    async def credential(self) -> Credential:
        """Return the credential, running the program if no valid credential is kept."""
        async with self._running:
            expired = self._expires_ns is not None and self._clock.now_ns() >= self._expires_ns
            if self._current is None or expired:
                self._current, self._expires_ns = self._parse_credential(await self._run())
            return self._current

    def reject(self) -> bool:
        """Forget the credential: the server refused it."""
        self._current = None
        return True

    def _check(self) -> None:
        if not self._config.command:
            raise self._error("exec has no command; name the program to run")
        if self._config.api_version not in _VERSIONS:
            raise self._error(
                f'exec apiVersion "{self._config.api_version}" is not supported; '
                f"use {' or '.join(_VERSIONS)}"
            )
        if self._config.api_version == _VERSIONS[0] and not self._config.interactive_mode:
            raise self._error(
                f"exec interactiveMode is required with {_VERSIONS[0]}; "
                "write Never, IfAvailable or Always"
            )

    def _interactive(self) -> bool:
        mode = self._config.interactive_mode or "IfAvailable"
        if mode == "Never":
            return False
        terminal = sys.stdin is not None and sys.stdin.isatty()
        if mode == "Always" and not terminal:
            raise self._error(
                "exec interactiveMode is Always but standard input is no terminal; "
                "run in a terminal or use another mode"
            )
        return terminal

    def _request(self, *, interactive: bool) -> bytes:
        spec: dict[str, object] = {"interactive": interactive}
        if self._config.provide_cluster_info:
            spec["cluster"] = self._cluster
        return msgspec.json.encode(
            {"apiVersion": self._config.api_version, "kind": "ExecCredential", "spec": spec}
        )

    async def _run(self) -> bytes:
        interactive = self._interactive()
        environ = dict(self._environ)
        environ.update({entry.name: entry.value for entry in self._config.env or []})
        environ["KUBERNETES_EXEC_INFO"] = self._request(interactive=interactive).decode()
        command = self._config.command
        if os.sep in command:
            command = str((self._directory / command).absolute())
        try:
            process = await asyncio.create_subprocess_exec(
                command,
                *(self._config.args or []),
                env=environ,
                stdin=None if interactive else DEVNULL,
                stdout=PIPE,
                stderr=None if interactive else PIPE,
            )
        except OSError as error:
            hint = " ".join(self._config.install_hint.split())
            advice = hint or "install it or correct the command"
            raise self._error(
                f"exec program {self._config.command} cannot be run: {error.strerror}; {advice}"
            ) from error
        try:
            output, complaint = await process.communicate()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        if process.returncode:
            words = (complaint or b"").decode("utf-8", "replace").strip()[-_STDERR_CHARS_MAX:]
            said = f": {words}" if words else ""
            raise self._error(
                f"exec program {self._config.command} ended with {process.returncode}{said}"
            )
        return output

    def _parse_credential(self, output: bytes) -> tuple[Credential, int | None]:
        try:
            answer = msgspec.json.decode(output, type=_ExecAnswer)
            status = answer.status
            expires_ns = (
                parse_rfc3339(status.expiration_timestamp)
                if status and status.expiration_timestamp
                else None
            )
        except (msgspec.MsgspecError, ValueError) as error:
            raise self._error(
                f"exec program {self._config.command} printed no ExecCredential: {error}"
            ) from error
        if answer.kind != "ExecCredential" or answer.api_version != self._config.api_version:
            raise self._error(
                f"exec program {self._config.command} printed {answer.api_version or 'nothing'} "
                f"{answer.kind}, wanted {self._config.api_version} ExecCredential"
            )
        certificate, key = (
            (status.client_certificate_data, status.client_key_data) if status else ("", "")
        )
        if status is None or not (status.token or certificate):
            raise self._error(
                f"exec program {self._config.command} gave neither token nor client certificate"
            )
        if bool(certificate) != bool(key):
            raise self._error(
                f"exec program {self._config.command} gave only one of clientCertificateData "
                "and clientKeyData; both are needed"
            )
        headers = (
            (*self._base.headers, bearer(status.token)) if status.token else (self._base.headers)
        )
        credential = Credential(
            headers=headers,
            certificate_pem=certificate.encode() or None,
            key_pem=key.encode() or None,
        )
        return credential, expires_ns

    def _error(self, text: str) -> KubeconfigError:
        return KubeconfigError(f"{self._what}: {text}")
