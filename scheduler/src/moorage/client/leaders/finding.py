"""Finds the scheduler that leads: by a Lease, its annotation, and a tunnel to its pod."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from moorage.api.codec import decode_untyped
from moorage.api.resources import LEASES as LEASE_OBJECTS
from moorage.api.resources import resource_path
from moorage.base.errors import MoorageError, NotFoundError
from moorage.client.auth import ServerAccess
from moorage.client.http_transport import HttpTransport
from moorage.client.leaders.address import LeaderAddress, leader_address
from moorage.client.leaders.port_forward import forwarded
from moorage.client.status import error_from_answer
from moorage.client.transport import Call, Transport

LEASES: Final = (("kube-system", "kube-scheduler"), ("moorage", "moorage"))
"""Leases that are looked at where none is named: of the only scheduler, and of a second one.

Not those of all namespaces: whoever may write a Lease somewhere would be sent the credentials of
all who ask (decision 110). `other_leases` names them, so that a user can choose one.
"""
_ELSEWHERE: Final = (("fieldSelector", "metadata.namespace!=kube-node-lease"),)


async def find_leader(
    transport: Transport, leases: tuple[tuple[str, str], ...] = LEASES
) -> tuple[LeaderAddress, str] | None:
    """Return the first leader of moorage, and ``NAMESPACE/NAME`` of its Lease; None without one.

    Parameters
    ----------
    transport
        The way to the API server.
    leases
        Namespace and name of each Lease, in the order in which they are looked at.

    Raises
    ------
    MoorageError
        A Lease cannot be read, and none that can has a leader of moorage.
    """
    refusal: MoorageError | None = None
    for namespace, name in leases:
        answer = await transport.request(Call("GET", resource_path(LEASE_OBJECTS, namespace, name)))
        if answer.status != 200:
            error = error_from_answer(answer)
            refusal = refusal if isinstance(error, NotFoundError) else error
            continue
        found = leader_address(decode_untyped(answer.body))
        if found is not None:
            return found, f"{namespace}/{name}"
    if refusal is not None:
        raise refusal
    return None


async def other_leases(transport: Transport) -> tuple[str, ...]:
    """Return ``NAMESPACE/NAME`` of all Leases that a pod of moorage holds, sorted.

    Empty where the caller may not list the Leases of all namespaces, or no server answers.
    """
    try:
        answer = await transport.request(
            Call("GET", resource_path(LEASE_OBJECTS), query=_ELSEWHERE)
        )
    except MoorageError:
        return ()
    if answer.status != 200:
        return ()
    return tuple(
        sorted(
            f"{lease['metadata']['namespace']}/{lease['metadata']['name']}"
            for lease in decode_untyped(answer.body)["items"]
            if leader_address(lease) is not None
        )
    )


async def has_leader(transport: Transport) -> bool:
    """Whether a leader is found; not where no server answers, or no Lease may be read."""
    try:
        return await find_leader(transport) is not None
    except MoorageError:
        return False


@asynccontextmanager
async def leader_access(
    access: ServerAccess, transport: HttpTransport, leader: LeaderAddress
) -> AsyncIterator[ServerAccess]:
    """Open a tunnel to a leader; yield the way to it, with the caller's credentials.

    Parameters
    ----------
    access, transport
        The way to the API server.
    leader
        The leader: its pod, its port, and the certificate that it has to present.

    Raises
    ------
    MoorageError
        What failed inside the context, with the fault of the tunnel where that was the cause.
    """
    from moorage.base.certificates import server_names

    certificate = leader.certificate.encode()
    async with forwarded(transport, leader.pod, leader.port) as (port, tunnel):
        try:
            yield ServerAccess(
                f"https://127.0.0.1:{port}",
                access.credentials,
                ca_pem=certificate,
                tls_server_name=next(iter(server_names(certificate)), ""),
            )
        except MoorageError as error:
            if tunnel.failure is None:
                raise
            raise MoorageError(
                f"the pod {leader.pod} cannot be reached: {tunnel.failure}; a caller needs the "
                "verbs get and create on pods/portforward in its namespace"
            ) from error
