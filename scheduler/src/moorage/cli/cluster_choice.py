"""Which cluster a command speaks to: one rule for all commands (decision 83).

The first that exists of: the flag, ``KUBECONFIG``, the sandbox of this folder, the service account
of the pod we run in, ``~/.kube/config``. `moorage.client.kubeconfig.find_server` has the order;
this module has the sandbox, and the note that says which cluster it is. A choice holds for the
whole command, so that one answer never has two sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from moorage.base.clock import Clock, SystemClock
from moorage.base.errors import KubeconfigError, UsageError
from moorage.base.running_sandboxes import SandboxRecord, find, find_all, find_dead, kubeconfig_of
from moorage.cli.render import show_note
from moorage.client.auth import ServerAccess
from moorage.client.kubeconfig import ServerChoice, ServerSource, find_server
from moorage.client.kubeconfig_file import read_kubeconfig

_META = "moorage.cli.cluster_choice"
_NOTED = "noted"


class ClusterChoice(msgspec.Struct, frozen=True):
    """The cluster of a command.

    Parameters
    ----------
    access
        The way to the API server.
    source
        Where the server was found.
    sandbox
        The sandbox that the server belongs to; None for another cluster.
    title
        The cluster in words.
    """

    access: ServerAccess
    source: ServerSource
    sandbox: SandboxRecord | None
    title: str


class DeadSandboxError(KubeconfigError):
    """The sandbox of this folder was killed, so that a command does not know where to write."""


class StartingSandboxError(KubeconfigError):
    """The sandbox of this folder does not listen yet."""


def choose_cluster(
    kubeconfig: str = "",
    context: str = "",
    *,
    writes: bool = False,
    clock: Clock | None = None,
    notes: bool = True,
) -> ClusterChoice:
    """Choose the cluster of a command, and say once which it is.

    Parameters
    ----------
    kubeconfig, context
        The flags; "" where they are not given.
    writes
        Whether the command writes: it does not fall through to another cluster where the sandbox
        of this folder was killed.
    notes
        Whether a note says which cluster it is.

    Raises
    ------
    KubeconfigError
        No cluster was found, or the one that was found cannot be used.
    """
    command = click.get_current_context(silent=True)
    memory: dict[Any, Any] = {} if command is None else command.meta.setdefault(_META, {})
    key = (kubeconfig, context)
    if key not in memory:
        memory[key] = look_for_cluster(kubeconfig, context, writes=writes, clock=clock)
    cluster: ClusterChoice = memory[key]
    if notes and not memory.get(_NOTED):
        memory[_NOTED] = True
        show_note(f"cluster: {cluster.title}")
    return cluster


def look_for_cluster(
    kubeconfig: str, context: str, *, writes: bool = False, clock: Clock | None = None
) -> ClusterChoice:
    """Return the cluster of a command as it is now, without a note.

    Raises
    ------
    KubeconfigError
        As `choose_cluster`.
    """
    folder = _Folder(context, writes=writes)
    try:
        server = find_server(
            kubeconfig, context=context, clock=clock or SystemClock(), sandbox=folder.kubeconfig
        )
    except KubeconfigError as error:
        if not folder.dead or isinstance(error, DeadSandboxError):
            raise
        raise KubeconfigError(f"{error}; {folder.dead} does not run any more") from error
    sandbox = folder.record or _sandbox_of(server)
    return ClusterChoice(
        server.access, server.source, sandbox, _title(server, sandbox, context, folder.dead)
    )


class _Folder:
    """The sandbox of this folder, looked for when its turn comes.

    Parameters
    ----------
    context
        The context that the user names; "" for none. A kubeconfig without it is not meant.
    writes
        As in `choose_cluster`.
    """

    def __init__(self, context: str, *, writes: bool) -> None:
        self._context = context
        self._writes = writes
        self.record: SandboxRecord | None = None
        self.dead = ""

    def kubeconfig(self) -> Path | None:
        """Return the kubeconfig of the sandbox that runs; None without one."""
        running, dead = find_all(), find_dead()
        if any(each.name == "" for each in running):
            running = running[:1]
        elif "" in dead:
            running = []
        running = [each for each in running if self._is_meant(Path(each.kubeconfig))]
        dead = [each for each in dead if self._is_meant(kubeconfig_of(each))]
        if len(running) > 1:
            raise _several(running)
        if not running and dead:
            self._refuse_dead(dead[0])
        if not running:
            return None
        self.record = running[0]
        if not self.record.url:
            raise StartingSandboxError(
                f"the {self.record.title} of this folder is starting; `moorage wait --for=ready"
                f"{_name_option(self.record.name)}` waits for it"
            )
        return Path(self.record.kubeconfig)

    def _is_meant(self, kubeconfig: Path) -> bool:
        if not self._context:
            return True
        return kubeconfig.exists() and any(
            each.name == self._context for each in read_kubeconfig(kubeconfig).contexts or ()
        )

    def _refuse_dead(self, name: str) -> None:
        self.dead = f"the sandbox {name} of this folder" if name else "the sandbox of this folder"
        if self._writes:
            option = _name_option(name)
            raise DeadSandboxError(
                f"{self.dead} does not run any more, and this command writes: "
                f"`moorage up -d{option}` starts it again, `moorage down{option}` forgets it, "
                "--kubeconfig FILE names another cluster"
            )


def _several(running: Sequence[SandboxRecord]) -> UsageError:
    names = ", ".join(each.name for each in running)
    return UsageError(
        f"several sandboxes run in this folder: {names}; choose one with "
        f"--kubeconfig {running[0].kubeconfig}"
    )


def _name_option(name: str) -> str:
    return f" --name {name}" if name else ""


def _sandbox_of(server: ServerChoice) -> SandboxRecord | None:
    """Return the sandbox that a server belongs to, by the records that may know the server.

    A file among several may name another server than the sandbox's, so the address decides.
    """
    records = [*(find(path) for path in server.files), *find_all()]
    for record in records:
        if record is None:
            continue
        starts = not record.url and server.files == (Path(record.kubeconfig),)
        if starts or record.url == server.access.server:
            return record
    return None


def _title(server: ServerChoice, sandbox: SandboxRecord | None, context: str, dead: str) -> str:
    files = ":".join(str(path) for path in server.files)
    match server.source:
        case ServerSource.FLAG:
            words = f"--kubeconfig {files}"
        case ServerSource.VARIABLE:
            words = f"KUBECONFIG {files}"
        case ServerSource.SANDBOX if sandbox is not None:
            words = f"the {sandbox.title} of this folder"
        case source:
            words = source.value
    used = f", context {context}" if context else ""
    ended = f"; {dead} does not run any more" if dead else ""
    return f"{words}{used}, {server.access.server}{ended}"
