"""A scheduler elsewhere as the source of a page's answers: its questions, asked over HTTP."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.base.errors import MoorageError
from moorage.cli.ask import proxy_path, question_call
from moorage.client.transport import Answer, Call, Transport
from moorage.dashboard.source import Answered
from moorage.service.questions.question import PREFIX


class Remote:
    """Asks a scheduler over HTTP.

    Parameters
    ----------
    transport
        Carries the calls.
    path
        What stands before the path of a question: the path of a proxy, or nothing.
    """

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport = transport
        self._path = path

    async def ask(self, path: str, query: Mapping[str, str], body: bytes = b"") -> Answered:
        """Ask a question.

        Raises
        ------
        TransportError
            The scheduler cannot be reached.
        """
        call = question_call(f"{self._path}{PREFIX}{path}", query, body=body)
        answer: Answer = await self._transport.request(call)
        return Answered(answer.body, answer.status)


async def by_lease(transport: Transport, namespace: str, name: str) -> tuple[Remote, str] | None:
    """Find the scheduler that holds a lease, where it is a pod that answers questions.

    Parameters
    ----------
    transport
        Of the API server, whose proxy reaches the pod.
    namespace, name
        The lease. A replica calls itself ``POD_SUFFIX`` in it.

    Returns
    -------
    tuple or None
        The scheduler, and ``namespace/pod``; None where no scheduler of moorage answers.
    """
    pod = await _holder(transport, namespace, name)
    if not pod:
        return None
    remote = Remote(transport, proxy_path(namespace, pod))
    try:
        answered = await remote.ask("/queue", {"limit": "1"})
    except MoorageError:
        return None
    is_ours = answered.status == 200 and b'"SchedulingQueue"' in answered.body
    return (remote, f"{namespace}/{pod}") if is_ours else None


async def _holder(transport: Transport, namespace: str, name: str) -> str:
    """Return the name of the pod that holds a lease; "" where that cannot be read."""
    from moorage.api.codec import decode_untyped

    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
    try:
        answer = await transport.request(Call("GET", path))
        lease = decode_untyped(answer.body)
    except MoorageError:
        return ""
    if answer.status != 200 or not isinstance(lease, dict):
        return ""
    holder = str((lease.get("spec") or {}).get("holderIdentity") or "")
    return holder.rpartition("_")[0]
