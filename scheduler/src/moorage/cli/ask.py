"""Asks a running scheduler: finds it, sends a question, reads the answer.

The scheduler of a sandbox is found by itself, and so is the leader of a cluster, by its Lease.
Another one is named with ``--scheduler``: by its address, or as a pod that the API server's proxy
reaches.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from moorage.base.errors import (
    ApiError,
    KubeconfigError,
    MoorageError,
    NotFoundError,
    TransportError,
    UnauthorizedError,
    UsageError,
)
from moorage.base.files import read_file
from moorage.base.process import run_loop
from moorage.cli.cluster_choice import choose_cluster
from moorage.cli.question_target import QuestionTarget
from moorage.cli.render import show_note
from moorage.client.auth import Credential, FixedCredentials, ServerAccess, bearer
from moorage.client.http_transport import HttpTransport
from moorage.client.leaders.finding import (
    LEASES,
    Leader,
    find_leader,
    find_leaders,
    has_leader,
    leader_access,
    schedulers_among,
)
from moorage.client.status import error_from_answer
from moorage.client.transport import Answer, Call, Transport
from moorage.service.questions.question import PREFIX

T = TypeVar("T")

_POD: Final = re.compile(r"(?P<namespace>[a-z0-9-]+)/(?P<pod>[a-z0-9.-]+)(:(?P<port>\d{1,5}))?")
_LEASE: Final = re.compile(r"(?P<namespace>[a-z0-9-]+)/(?P<name>[a-z0-9.-]+)")
_PORT: Final = 10259
_PROXY: Final = "/proxy"
_NAME_IT: Final = "name another with --lease NAMESPACE/NAME, or the scheduler with --scheduler"
# Longer than a scheduler tries changes, questions before this one included.
_TRY_SECONDS: Final = 120.0
# A scheduler that lives says so while it tries changes for others, so nobody waits for the former.
_LIVE_SECONDS: Final = 15.0
_LIVE: Final = "/livez"


class _Hidden(msgspec.Struct):
    hidden: tuple[str, ...] = ()


class SchedulerLink:
    """The way to one scheduler.

    Parameters
    ----------
    transport
        Carries the calls.
    path
        What stands before the path of a question: the path of a proxy, or nothing.
    title
        The scheduler in words, for messages.
    by_lease
        Whether it is asked with the credentials of the kubeconfig, as the holder of a Lease.
    """

    def __init__(
        self, transport: HttpTransport, path: str, title: str, *, by_lease: bool = False
    ) -> None:
        self._transport = transport
        self._path = path
        self._proxied = path.endswith(_PROXY)
        self._by_lease = by_lease
        self._hidden: tuple[str, ...] = ()
        self.title = title

    async def ask(self, question: str, parameters: Mapping[str, str] | None = None) -> bytes:
        """Send a question and return the answer's body.

        Parameters
        ----------
        question
            The path below `PREFIX`, with a slash.
        parameters
            The query.

        Raises
        ------
        MoorageError
            The scheduler does not answer, or refuses; the message says what to do.
        """
        return await self._answer(question_call(f"{self._path}{PREFIX}{question}", parameters))

    async def post(self, question: str, body: bytes) -> bytes:
        """Send a question that comes as a body, and return the answer's body.

        Trying changes may take minutes, so the scheduler has to show first that it lives.

        Raises
        ------
        MoorageError
            The scheduler does not answer, or refuses; the message says what to do.
        """
        live = Call("GET", f"{self._path}{_LIVE}", timeout_seconds=_LIVE_SECONDS)
        await self._request(live)
        return await self._answer(question_call(f"{self._path}{PREFIX}{question}", body=body))

    async def _request(self, call: Call) -> Answer:
        try:
            return await self._transport.request(call)
        except TransportError as error:
            raise MoorageError(
                f"{self.title} does not answer: {error}{_advice_on_tls(error)}"
            ) from error

    async def _answer(self, call: Call) -> bytes:
        answer = await self._request(call)
        if answer.status == 200:
            self._note_hidden(answer.body)
            return answer.body
        raise self._refused(error_from_answer(answer))

    def _note_hidden(self, body: bytes) -> None:
        """Say what an answer hides for lack of rights; the same thing once."""
        try:
            hidden = msgspec.json.decode(body, type=_Hidden).hidden
        except msgspec.MsgspecError:
            return  # whoever reads the answer says so
        if hidden and hidden != self._hidden:
            show_note(f"you may not read {', '.join(hidden)}, so they are left out")
        self._hidden = hidden

    def _refused(self, error: ApiError) -> MoorageError:
        if error.code == 400:
            return UsageError(str(error))
        if isinstance(error, UnauthorizedError):
            about_an_object = error.code == HTTPStatus.FORBIDDEN and "cannot get resource" in str(
                error
            )
            remedy = "" if about_an_object and not self._proxied else f"; {self._remedy(error)}"
            return MoorageError(f"{self.title} refuses: {error}{remedy}")
        if isinstance(error, NotFoundError) and error.reason:
            return error
        if isinstance(error, NotFoundError):
            return MoorageError(
                f"{self.title} answers no questions: {error}; is it a moorage of this version?"
            )
        return error

    def _remedy(self, error: UnauthorizedError) -> str:
        """Return what helps who is not known, or not allowed to ask."""
        if error.code == HTTPStatus.UNAUTHORIZED:
            return "nobody is known by these credentials: " + (
                "log in again, or choose another user of the kubeconfig with --context"
                if self._proxied or self._by_lease
                else "give --token of a user of the scheduler's cluster"
            )
        open_to_all = f"--authorization-always-allow-paths=/healthz,/readyz,/livez,{PREFIX}/*"
        if self._proxied:
            return (
                "the user of the kubeconfig must be allowed to get, or create, pods/proxy there; "
                f"the proxy names no user to the scheduler, so run it with {open_to_all}"
            )
        who = (
            "the user of the kubeconfig must be one" if self._by_lease else "give --token of a user"
        )
        return (
            f"{who} that may get the paths {PREFIX}/*, and post to what-if, "
            "capacity and explain-object (a ClusterRole with nonResourceURLs), or run it with "
            f"{open_to_all}"
        )


def question_call(
    path: str, parameters: Mapping[str, str] | None = None, *, body: bytes = b""
) -> Call:
    """Return the call that asks a question.

    Parameters
    ----------
    path
        The path of the question, with that of a proxy before it where there is one.
    parameters
        The query.
    body
        What a query cannot hold, JSON; the question then takes the time of trying changes.
    """
    if body:
        return Call("POST", path, body=body, timeout_seconds=_TRY_SECONDS)
    return Call("GET", path, tuple((parameters or {}).items()))


def run_asking(work: Callable[[SchedulerLink], Coroutine[Any, Any, T]], to: QuestionTarget) -> T:
    """Find the scheduler, do the work, disconnect.

    Raises
    ------
    MoorageError
        There is no scheduler to ask, or it does not answer.
    """

    async def main() -> T:
        async with scheduler_access(to) as (access, path, title):
            transport = HttpTransport(access, user_agent="moorage-cli")
            try:
                by_lease = is_by_lease(to)
                return await work(SchedulerLink(transport, path, title, by_lease=by_lease))
            finally:
                await transport.close()

    return run_loop(main())


def read_answer(body: bytes, answer: type[T]) -> T:
    """Decode the answer of a scheduler.

    Raises
    ------
    MoorageError
        The body is no such answer of this version.
    """
    try:
        return msgspec.json.decode(body, type=answer)
    except msgspec.MsgspecError as error:
        raise MoorageError(
            f"the scheduler's answer cannot be read: {error}; has it another version?"
        ) from error


@asynccontextmanager
async def scheduler_access(to: QuestionTarget) -> AsyncIterator[tuple[ServerAccess, str, str]]:
    """Open the way to a scheduler; yield the server, the path before each question's, and words.

    Raises
    ------
    MoorageError
        There is no scheduler to ask.
    """
    if not is_by_lease(to):
        yield find_scheduler(to)
        return
    cluster = choose_cluster(to.kubeconfig, to.context)
    transport = HttpTransport(cluster.access, user_agent="moorage-cli")
    try:
        leader, lease = await leader_of(to, transport, cluster.access.server)
        show_note(f"asking the pod {leader.pod}, which holds the Lease {lease}")
        async with leader_access(cluster.access, transport, leader) as access:
            yield access, "", f"the scheduler {leader.pod}"
    finally:
        await transport.close()


async def leader_of(to: QuestionTarget, transport: Transport, server: str) -> Leader:
    """Return the leader, and its Lease.

    Parameters
    ----------
    to
        May name the Lease.
    transport
        The way to the API server.
    server
        The API server in words.

    Raises
    ------
    MoorageError
        No pod of moorage holds a Lease that is looked at, or several schedulers hold others.
    """
    leases = _leases(to)
    names = " nor ".join(map("/".join, leases))
    refusal: MoorageError | None = None
    try:
        leader = await find_leader(transport, leases)
        fault = f"no pod of moorage holds the Lease {names} of {server}"
    except MoorageError as error:
        leader, refusal, fault = None, error, str(error)
    if leader is not None:
        return leader
    others = await find_leaders(transport)
    schedulers = [] if to.lease else await schedulers_among(transport, others)
    if len(schedulers) == 1:
        return schedulers[0]
    advice = _lease_advice(schedulers or others, trusted=bool(schedulers))
    raise MoorageError(f"no scheduler to ask: {fault}; {advice}") from refusal


def _lease_advice(leaders: Sequence[Leader], *, trusted: bool) -> str:
    """Return what to do where no Lease that is looked at has a leader."""
    if not leaders:
        return _NAME_IT
    held = ", ".join(lease for _, lease in leaders)
    trust = "" if trusted else "if you trust who may write there, "
    return f"moorage holds {held}: {trust}ask with --lease {leaders[0][1]}"


def is_by_lease(to: QuestionTarget) -> bool:
    """Whether the holder of a Lease is asked.

    Raises
    ------
    UsageError
        Options were given that exclude each other.
    """
    if to.scheduler:
        if to.lease:
            raise UsageError("--lease finds the scheduler that --scheduler names: leave one out")
        return False
    if to.lease:
        return True
    try:
        return choose_cluster(to.kubeconfig, to.context).sandbox is None
    except KubeconfigError:
        return False  # `find_scheduler` says so


def _leases(to: QuestionTarget) -> tuple[tuple[str, str], ...]:
    if not to.lease:
        return LEASES
    match = _LEASE.fullmatch(to.lease)
    if match is None:
        raise UsageError(f"--lease {to.lease}: write NAMESPACE/NAME")
    return ((match["namespace"], match["name"]),)


def find_scheduler(to: QuestionTarget) -> tuple[ServerAccess, str, str]:
    """Return the server to call, the path before each question's, and the scheduler in words.

    Raises
    ------
    MoorageError
        There is no scheduler to ask.
    """
    address = to.scheduler
    if not address:
        if to.token or to.certificate_authority or to.insecure:
            raise UsageError(
                "--token, --certificate-authority and --insecure-skip-tls-verify belong to "
                "--scheduler: name the scheduler"
            )
        return _of_sandbox(to)
    if address.startswith(("https://", "http://")):
        return _at_address(to)
    pod_match = _POD.fullmatch(address)
    if pod_match is None:
        raise UsageError(
            f"--scheduler {address}: write https://ADDRESS:PORT or NAMESPACE/POD[:PORT]"
        )
    if to.token or to.certificate_authority or to.insecure:
        raise UsageError(
            "--token, --certificate-authority and --insecure-skip-tls-verify belong to a "
            f"--scheduler given by its address: the kubeconfig says who asks for {address}"
        )
    access = choose_cluster(to.kubeconfig, to.context).access
    path = proxy_path(pod_match["namespace"], pod_match["pod"], pod_match["port"] or str(_PORT))
    return access, path, f"the scheduler {address} through {access.server}"


def proxy_path(namespace: str, pod: str, port: str = str(_PORT)) -> str:
    """Return the path by which the API server's proxy reaches the secure port of a pod."""
    name = quote(f"https:{pod}:{port}", safe=":")
    return f"/api/v1/namespaces/{namespace}/pods/{name}{_PROXY}"


def has_scheduler(to: QuestionTarget) -> bool:
    """Whether somebody can be asked whom nobody named: a sandbox's scheduler, or a leader."""
    cluster = choose_cluster(to.kubeconfig, to.context)
    if cluster.sandbox is not None:
        return bool(cluster.sandbox.health)

    async def look() -> bool:
        transport = HttpTransport(cluster.access, user_agent="moorage-cli")
        try:
            return await has_leader(transport)
        finally:
            await transport.close()

    return run_loop(look())


def is_sandbox(to: QuestionTarget) -> bool:
    """Whether the chosen cluster is a sandbox that runs with a scheduler of its own."""
    sandbox = choose_cluster(to.kubeconfig, to.context).sandbox
    return sandbox is not None and bool(sandbox.health)


def _of_sandbox(to: QuestionTarget) -> tuple[ServerAccess, str, str]:
    """Return the scheduler of the sandbox that was chosen."""
    try:
        cluster = choose_cluster(to.kubeconfig, to.context)
    except KubeconfigError as error:
        if to.kubeconfig or to.context:
            raise
        raise MoorageError(
            f"no scheduler to ask: {error}, or name the scheduler with --scheduler"
        ) from error
    record = cluster.sandbox
    assert record is not None, "another cluster's scheduler is found by its Lease"
    if not record.health:
        raise MoorageError(
            f"no scheduler to ask: the {record.title} with the kubeconfig {record.kubeconfig} "
            "runs none yet, or none of its own; name another with --scheduler"
        )
    # The address is in a file that only its user can write; the certificate is made at each start.
    # With --rbac, the port asks who calls, so the kubeconfig's credentials go along.
    credentials = cluster.access.credentials
    access = ServerAccess(record.health, credentials, insecure_skip_tls_verify=True)
    return access, "", f"the scheduler of the {record.title} at {record.health}"


def _at_address(to: QuestionTarget) -> tuple[ServerAccess, str, str]:
    address = to.scheduler.rstrip("/")
    parts = urlsplit(address)
    headers = (bearer(to.token),) if to.token else ()
    access = ServerAccess(
        f"{parts.scheme}://{parts.netloc}",
        FixedCredentials(Credential(headers)),
        ca_pem=None if to.certificate_authority is None else _read(to.certificate_authority),
        insecure_skip_tls_verify=to.insecure,
    )
    return access, parts.path, f"the scheduler at {address}"


def _read(path: Path) -> bytes:
    try:
        return read_file(path)
    except OSError as error:
        raise UsageError(f"--certificate-authority {path}: {error.strerror}") from error


def _advice_on_tls(error: TransportError) -> str:
    if "CERTIFICATE_VERIFY_FAILED" not in str(error):
        return ""
    return "; give --certificate-authority FILE, or --insecure-skip-tls-verify to trust any"
