"""A context in the user's own kubeconfig: ``moorage up --merge-kubeconfig``.

The context is put in when the sandbox starts, and taken out when it ends. Other entries are left as
they are; the file is written anew as a whole, as ``kubectl config`` does, under kubectl's lock.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from moorage.api.yaml_text import read_one, write_yaml
from moorage.base.errors import DecodeError, UsageError
from moorage.base.files import read_file
from moorage_sandbox.sandbox.settings import SANDBOX_CONTEXT

_LISTS = {"clusters": "cluster", "users": "user", "contexts": "context"}
# Marks an entry as a sandbox's, so that entries of the same name are not lost.
_MARK = {"name": "moorage.dev/sandbox", "extension": {}}
_MODE = 0o600


def context_name(sandbox: str) -> str:
    """Return the name of a sandbox's context."""
    return f"{SANDBOX_CONTEXT}-{sandbox}" if sandbox else SANDBOX_CONTEXT


def put_in(file: Path, name: str, kubeconfig: str) -> None:
    """Put cluster, user and context of a sandbox into a file; replace those of an earlier sandbox.

    The context becomes the current one if there is none.

    Parameters
    ----------
    file
        The user's kubeconfig; created if missing.
    name
        Name of context, cluster and user.
    kubeconfig
        Text of the sandbox's kubeconfig.

    Raises
    ------
    UsageError
        The file cannot be read or written, or has entries of this name that are not a sandbox's.
    """
    ours = read_one(kubeconfig)
    with _changing(file) as content:
        if any(_entry_named(content, kind, name) for kind in _LISTS) and not _is_ours(
            content, name
        ):
            raise UsageError(
                f"{file} has a context {name!r} that is no sandbox's; name the sandbox with --name"
            )
        _remove(content, name)
        for kind, key in _LISTS.items():
            entry = {**ours[kind][0][key]}
            if kind == "clusters":
                entry["extensions"] = [_MARK]
            if kind == "contexts":
                entry = {"cluster": name, "user": name}
            content[kind] = [*(content.get(kind) or []), {"name": name, key: entry}]
        content.setdefault("apiVersion", "v1")
        content.setdefault("kind", "Config")
        content["current-context"] = content.get("current-context") or name


def take_out(file: Path, name: str) -> None:
    """Take a sandbox's cluster, user and context out of a file, if they are there.

    Raises
    ------
    UsageError
        The file cannot be read or written.
    """
    with _changing(file) as content:
        if _is_ours(content, name):
            _remove(content, name)
            if content.get("current-context") == name:
                content["current-context"] = ""


@contextmanager
def _changing(file: Path) -> Iterator[dict[str, Any]]:
    """Read a file, let it be changed, and write it if it was."""
    # A link, to a file that is kept elsewhere, stays a link.
    file = file.resolve()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(file):
            text = read_file(file) if file.exists() else b""
            content = read_one(text) if text.strip() else {}
            if not isinstance(content, dict):
                raise UsageError(f"{file} is not a kubeconfig")
            yield content
            if content != (read_one(text) if text.strip() else {}):
                _replace(file, write_yaml(content))
    except DecodeError as error:
        raise UsageError(f"{file} is not a kubeconfig: {error}") from error
    except OSError as error:
        raise UsageError(f"cannot change {file}: {error.strerror}") from error


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Hold the lock that kubectl holds while it changes a kubeconfig.

    client-go v1.36 ``tools/clientcmd/config.go`` ``lockFile``: a file that must not exist before.
    """
    lock = file.with_name(f"{file.name}.lock")
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0))
    except FileExistsError as error:
        raise UsageError(
            f"{file} is being changed by another program; if none is, remove {lock}"
        ) from error
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            lock.unlink()


def _replace(file: Path, text: str) -> None:
    mode = file.stat().st_mode & 0o777 if file.exists() else _MODE
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f"{file.name}-")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            os.fchmod(descriptor, mode)
            stream.write(text)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _entry_named(content: dict[str, Any], kind: str, name: str) -> dict[str, Any] | None:
    for each in content.get(kind) or []:
        if isinstance(each, dict) and each.get("name") == name:
            return each
    return None


def _is_ours(content: dict[str, Any], name: str) -> bool:
    cluster = (_entry_named(content, "clusters", name) or {}).get("cluster") or {}
    return _MARK in (cluster.get("extensions") or [])


def _remove(content: dict[str, Any], name: str) -> None:
    for kind in _LISTS:
        if _entry_named(content, kind, name) is not None:
            content[kind] = [each for each in content[kind] if each.get("name") != name]
