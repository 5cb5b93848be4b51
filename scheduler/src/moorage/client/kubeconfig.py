"""Reading kubeconfig files: from names in YAML to a `ServerAccess` that can be used.

The files named by ``--kubeconfig`` or ``KUBECONFIG`` are merged as kubectl merges them, the
context is resolved, and every fault says file, entry and remedy. Paths inside a file are
relative to that file.

Notes
-----
Mirrors kubernetes v1.36 client-go tools/clientcmd (loader.go, client_config.go, validation.go).
Left out: ``auth-provider`` (removed upstream; refused with a message).
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TypeVar

import msgspec

from moorage.base.clock import Clock
from moorage.base.errors import KubeconfigError
from moorage.base.files import read_file
from moorage.client.auth import (
    AuthorityFile,
    Credential,
    CredentialSource,
    FileCredentials,
    FixedCredentials,
    ServerAccess,
    basic,
    bearer,
    certificate_file,
    incluster_access,
    is_server_url,
    token_file,
)
from moorage.client.exec_credential import ExecCluster, ExecCredentials
from moorage.client.kubeconfig_file import (
    ClusterEntry,
    ContextEntry,
    KubeconfigFile,
    UserEntry,
    read_kubeconfig,
)

EntryT = TypeVar("EntryT")


class Kubeconfig:
    """Several kubeconfig files merged: of two entries with the same name the first file wins.

    Parameters
    ----------
    files
        (path, content) in order of precedence.
    """

    def __init__(self, files: Sequence[tuple[Path, KubeconfigFile]]) -> None:
        self.paths = tuple(path for path, _ in files)
        self.current_context = ""
        self.clusters: dict[str, tuple[Path, ClusterEntry]] = {}
        self.users: dict[str, tuple[Path, UserEntry]] = {}
        self.contexts: dict[str, tuple[Path, ContextEntry]] = {}
        for path, content in files:
            self.current_context = self.current_context or content.current_context or ""
            for cluster in content.clusters or []:
                self.clusters.setdefault(cluster.name, (path, cluster.cluster or ClusterEntry()))
            for user in content.users or []:
                self.users.setdefault(user.name, (path, user.user or UserEntry()))
            for context in content.contexts or []:
                self.contexts.setdefault(context.name, (path, context.context or ContextEntry()))

    def access(
        self, context: str = "", *, clock: Clock, environ: Mapping[str, str] | None = None
    ) -> ServerAccess:
        """Resolve a context to the access that a transport needs.

        Parameters
        ----------
        context
            Context to use; "" for the current one.
        environ
            Environment handed to exec programs; None for this process's own.

        Raises
        ------
        KubeconfigError
            An entry is missing, or something it names cannot be read or used.
        """
        name = context or self.current_context
        path, chosen = self._context(name)
        cluster_path, cluster = self._entry("cluster", chosen.cluster, self.clusters, path, name)
        if not cluster.server:
            raise KubeconfigError(
                f'{cluster_path}: cluster "{chosen.cluster}" has no server; add its URL'
            )
        if not is_server_url(cluster.server):
            raise KubeconfigError(
                f'{cluster_path}: cluster "{chosen.cluster}": server {cluster.server!r} is no URL; '
                "write one such as https://10.0.0.1:6443"
            )
        user_path, user = path, UserEntry()
        if chosen.user:
            user_path, user = self._entry("user", chosen.user, self.users, path, name)
        cluster_at = _At(cluster_path, f'cluster "{chosen.cluster}"')
        ca_pem = _material(
            cluster_at,
            "certificate-authority",
            data=cluster.certificate_authority_data,
            file=cluster.certificate_authority,
        )
        ca_file = None
        if ca_pem is not None and not cluster.certificate_authority_data:
            ca_file = AuthorityFile(
                cluster_at.resolve(cluster.certificate_authority),
                what=f"{cluster_path}: certificate-authority",
                clock=clock,
            )
        if ca_pem is not None and cluster.insecure_skip_tls_verify:
            raise cluster_at.error(
                "insecure-skip-tls-verify and certificate-authority exclude each other; "
                "remove one of them"
            )
        source = _credentials(
            _At(user_path, f'user "{chosen.user}"'),
            user,
            cluster=_exec_cluster(cluster, ca_pem),
            clock=clock,
            environ=environ,
        )
        return ServerAccess(
            server=cluster.server.rstrip("/"),
            credentials=source,
            ca_pem=ca_pem,
            ca_file=ca_file,
            insecure_skip_tls_verify=cluster.insecure_skip_tls_verify,
            tls_server_name=cluster.tls_server_name,
            proxy_url=cluster.proxy_url,
            namespace=chosen.namespace,
        )

    def _context(self, name: str) -> tuple[Path, ContextEntry]:
        files = _join(self.paths)
        if not name:
            raise KubeconfigError(
                f"{files}: no current-context; name one with --context or set current-context"
            )
        if name not in self.contexts:
            raise KubeconfigError(
                f'{files}: there is no context "{name}"; {_choices("contexts", self.contexts)}'
            )
        return self.contexts[name]

    @staticmethod
    def _entry(
        kind: str,
        name: str,
        entries: Mapping[str, tuple[Path, EntryT]],
        path: Path,
        context: str,
    ) -> tuple[Path, EntryT]:
        if name not in entries:
            wanted = f'{kind} "{name}", which is not there' if name else f"no {kind}"
            raise KubeconfigError(
                f'{path}: context "{context}" names {wanted}; {_choices(f"{kind}s", entries)}'
            )
        return entries[name]


class _At(msgspec.Struct, frozen=True):
    """A place in a file, for messages and relative paths."""

    path: Path
    entry: str

    def error(self, text: str) -> KubeconfigError:
        return KubeconfigError(f"{self.path}: {self.entry}: {text}")

    def resolve(self, text: str) -> Path:
        return (
            self.path.parent / Path(text).expanduser()
            if text[:1] == "~"
            else (self.path.parent / text)
        )


def load_kubeconfig(paths: Sequence[Path], *, must_exist: bool) -> Kubeconfig | None:
    """Merge files in order of precedence; None if none exists and none has to.

    Parameters
    ----------
    must_exist
        Whether a missing file is an error (``--kubeconfig``) or skipped (``KUBECONFIG``).
    """
    files = [(path, read_kubeconfig(path)) for path in paths if must_exist or path.exists()]
    return Kubeconfig(files) if files else None


class ServerSource(Enum):
    """Where an API server was found, in the order of precedence."""

    FLAG = "--kubeconfig"
    VARIABLE = "KUBECONFIG"
    SANDBOX = "the sandbox of this folder"
    IN_CLUSTER = "the service account of this pod"
    HOME = "~/.kube/config"


class ServerChoice(msgspec.Struct, frozen=True):
    """An API server, and where it was found.

    Parameters
    ----------
    access
        The way to the server.
    source
        Where it was found.
    files
        The kubeconfig files that were merged; empty in a pod.
    """

    access: ServerAccess
    source: ServerSource
    files: tuple[Path, ...] = ()


def find_access(
    kubeconfig: str = "",
    *,
    context: str = "",
    clock: Clock,
    environ: Mapping[str, str] | None = None,
) -> ServerAccess:
    """Find the server the way kubectl does, as `find_server` without a sandbox."""
    return find_server(kubeconfig, context=context, clock=clock, environ=environ).access


def find_server(
    kubeconfig: str = "",
    *,
    context: str = "",
    clock: Clock,
    environ: Mapping[str, str] | None = None,
    sandbox: Callable[[], Path | None] = lambda: None,
) -> ServerChoice:
    """Find the server: the first that exists of flag, KUBECONFIG, sandbox, in-cluster and home.

    ``KUBECONFIG`` that names only missing files is no reason to look at a sandbox or at home: its
    user means another cluster.

    Parameters
    ----------
    kubeconfig
        File given by flag or configuration, "" for none.
    context
        The context; "" for the current one. In a pod there are no contexts, so that the service
        account is passed over.
    environ
        Environment variables; None for this process's own.
    sandbox
        Called when neither flag nor ``KUBECONFIG`` names a server; returns the kubeconfig of a
        sandbox, None without one.

    Raises
    ------
    KubeconfigError
        No access was found, or the access found cannot be used.

    Notes
    -----
    Mirrors kubernetes v1.36 client-go tools/clientcmd/client_config.go and loader.go, except that
    the service account of a pod precedes ``~/.kube/config``, and for `sandbox`.
    """
    variables = os.environ if environ is None else environ

    def first_present(source: ServerSource, *paths: Path) -> ServerChoice | None:
        present = tuple(path for path in paths if path.exists())
        return required(source, *present) if present else None

    def required(source: ServerSource, *paths: Path) -> ServerChoice:
        merged = Kubeconfig([(path, read_kubeconfig(path)) for path in paths])
        access = merged.access(context, clock=clock, environ=environ)
        return ServerChoice(access, source, paths)

    if kubeconfig:
        return required(ServerSource.FLAG, Path(kubeconfig).expanduser())
    listed = [Path(part) for part in variables.get("KUBECONFIG", "").split(os.pathsep) if part]
    named = first_present(ServerSource.VARIABLE, *listed)
    if named is not None:
        return named
    local = None if listed else sandbox()
    if local is not None:
        return required(ServerSource.SANDBOX, local)
    inside = None if context else incluster_access(variables, clock=clock)
    if inside is not None:
        return ServerChoice(inside, ServerSource.IN_CLUSTER)
    if listed:
        raise KubeconfigError(
            f"no API server to talk to: KUBECONFIG names {_join(listed)}, which is not there; "
            "unset it, or give --kubeconfig FILE"
        )
    home = Path(variables.get("HOME", "~")).expanduser() / ".kube" / "config"
    default = first_present(ServerSource.HOME, home)
    if default is not None:
        return default
    raise KubeconfigError(
        f"no API server to talk to: there is no {home} and this is not a pod; "
        "give --kubeconfig FILE"
    )


def _credentials(
    at: _At,
    user: UserEntry,
    *,
    cluster: ExecCluster,
    clock: Clock,
    environ: Mapping[str, str] | None,
) -> CredentialSource:
    _check_user(at, user)
    headers = list(_impersonation(at, user))
    if user.exec is not None:
        return ExecCredentials(
            user.exec,
            cluster=cluster,
            directory=at.path.parent,
            what=f"{at.path}: {at.entry}",
            base=Credential(headers=tuple(headers)),
            clock=clock,
            environ=os.environ if environ is None else environ,
        )
    if user.token:
        headers.append(bearer(user.token))
    elif user.username or user.password:
        headers.append(basic(user.username, user.password))
    base = Credential(
        headers=tuple(headers),
        certificate_pem=_decode(at, "client-certificate-data", user.client_certificate_data),
        key_pem=_decode(at, "client-key-data", user.client_key_data),
    )
    what = f"{at.path}: {at.entry}"
    files = FileCredentials(
        base,
        token_file=token_file(at.resolve(user.token_file), what=f"{what}: tokenFile", clock=clock)
        if user.token_file
        else None,
        certificate=certificate_file(
            at.resolve(user.client_certificate), what=f"{what}: client-certificate", clock=clock
        )
        if user.client_certificate and base.certificate_pem is None
        else None,
        key=certificate_file(at.resolve(user.client_key), what=f"{what}: client-key", clock=clock)
        if user.client_key and base.key_pem is None
        else None,
    )
    if user.token_file or user.client_certificate or user.client_key:
        return files
    return FixedCredentials(base)


def _check_user(at: _At, user: UserEntry) -> None:
    """Refuse fields that cannot be combined (client-go tools/clientcmd/validation.go)."""
    if user.auth_provider is not None:
        name = user.auth_provider.get("name", "")
        raise at.error(
            f'auth-provider "{name}" is not supported, as in kubectl since 1.26; '
            "use its exec credential plugin"
        )
    ways = {
        "token": bool(user.token or user.token_file),
        "basic auth": bool(user.username or user.password),
        "exec": user.exec is not None,
    }
    used = [way for way, present in ways.items() if present]
    if len(used) > 1:
        raise at.error(f"more than one way to authenticate ({', '.join(used)}); keep one")
    certificate = user.client_certificate or user.client_certificate_data
    key = user.client_key or user.client_key_data
    if bool(certificate) != bool(key):
        present, missing = (
            ("client-certificate", "client-key")
            if certificate
            else ("client-key", "client-certificate")
        )
        raise at.error(f"{present} without {missing}; give both, as file or as -data")


def _impersonation(at: _At, user: UserEntry) -> Iterable[tuple[str, str]]:
    if not user.impersonate:
        if user.impersonate_uid or user.impersonate_groups:
            raise at.error("as-uid or as-groups without as; name the user to impersonate")
        return
    yield "Impersonate-User", user.impersonate
    if user.impersonate_uid:
        yield "Impersonate-Uid", user.impersonate_uid
    for group in user.impersonate_groups:
        yield "Impersonate-Group", group


def _exec_cluster(cluster: ClusterEntry, ca_pem: bytes | None) -> ExecCluster:
    config: object = None
    for extension in cluster.extensions:
        if extension.get("name") == "client.authentication.k8s.io/exec":
            config = extension.get("extension")
    return ExecCluster(
        server=cluster.server,
        tls_server_name=cluster.tls_server_name,
        insecure_skip_tls_verify=cluster.insecure_skip_tls_verify,
        certificate_authority_data=base64.b64encode(ca_pem).decode() if ca_pem else "",
        proxy_url=cluster.proxy_url,
        disable_compression=cluster.disable_compression,
        config=config,
    )


def _material(at: _At, field: str, *, data: str, file: str) -> bytes | None:
    """Return PEM bytes given inline or by file; inline wins, as in client-go."""
    if data:
        return _decode(at, f"{field}-data", data)
    if not file:
        return None
    path = at.resolve(file)
    try:
        return read_file(path)
    except OSError as error:
        raise at.error(f"{field}: cannot read {path}: {error.strerror}; check the path") from error


def _decode(at: _At, field: str, data: str) -> bytes | None:
    if not data:
        return None
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except binascii.Error as error:
        raise at.error(f"{field} is not base64 ({error}); write the file's base64 form") from error


def _join(paths: Sequence[Path]) -> str:
    return ", ".join(str(path) for path in paths)


def _choices(kind: str, entries: Mapping[str, object]) -> str:
    if not entries:
        return f"the file has no {kind}"
    return f"{kind} there are: {', '.join(sorted(entries))}"
