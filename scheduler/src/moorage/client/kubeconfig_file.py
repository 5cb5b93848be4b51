"""A kubeconfig file as written: its entries as types, and reading one file.

``kubeconfig`` merges the files and resolves a context.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from moorage.base.errors import DecodeError, KubeconfigError
from moorage.base.files import read_file
from moorage.client.exec_credential import ExecConfig


class ClusterEntry(msgspec.Struct, frozen=True, rename="kebab"):
    """``clusters[].cluster``."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: list[dict[str, object]] = []


class UserEntry(msgspec.Struct, frozen=True, rename="kebab"):
    """``users[].user``."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    impersonate: str = msgspec.field(default="", name="as")
    impersonate_uid: str = msgspec.field(default="", name="as-uid")
    impersonate_groups: list[str] = msgspec.field(default_factory=list, name="as-groups")
    exec: ExecConfig | None = None
    auth_provider: dict[str, object] | None = None


class ContextEntry(msgspec.Struct, frozen=True):
    """``contexts[].context``."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(msgspec.Struct, frozen=True):
    """An entry of ``clusters``."""

    name: str
    cluster: ClusterEntry | None = None


class NamedUser(msgspec.Struct, frozen=True):
    """An entry of ``users``."""

    name: str
    user: UserEntry | None = None


class NamedContext(msgspec.Struct, frozen=True):
    """An entry of ``contexts``."""

    name: str
    context: ContextEntry | None = None


class KubeconfigFile(msgspec.Struct, frozen=True, rename="kebab"):
    """A kubeconfig file as written."""

    current_context: str | None = ""
    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None


def read_kubeconfig(path: Path) -> KubeconfigFile:
    """Read and check one kubeconfig file.

    Raises
    ------
    KubeconfigError
        The file cannot be read, is not YAML, or a field has the wrong type.
    """
    try:
        text = read_file(path)
    except OSError as error:
        raise KubeconfigError(
            f"{path}: cannot read the kubeconfig: {error.strerror}; check the path and its "
            "permissions"
        ) from error
    return parse_kubeconfig(text, path)


def parse_kubeconfig(text: bytes, path: Path) -> KubeconfigFile:
    """Parse the content of a kubeconfig file; `path` is for messages and relative paths."""
    try:
        return msgspec.json.decode(text, type=KubeconfigFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # YAML, or a fault that the lines below tell
    # A sandbox writes JSON, and its start waits for imports.
    from moorage.api.yaml_text import read_one

    try:
        raw = read_one(text)
    except DecodeError as error:
        raise KubeconfigError(f"{path}: not YAML: {error}") from error
    if raw is None:
        raise KubeconfigError(f"{path}: the kubeconfig is empty; write one or choose another file")
    try:
        return msgspec.convert(raw, KubeconfigFile)
    except msgspec.ValidationError as error:
        raise KubeconfigError(
            f"{path}: not a kubeconfig: {error}; quote values that must be text"
        ) from error
