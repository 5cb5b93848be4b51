"""Finds the scheduler that leads: by a Lease, its annotation, and a tunnel to its pod."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

from moorage.api.codec import decode_untyped, encode
from moorage.api.resources import LEASES as LEASE_OBJECTS
from moorage.api.resources import PODS, resource_path
from moorage.base.errors import MoorageError, NotFoundError
from moorage.client.auth import ServerAccess
from moorage.client.http_transport import HttpTransport
from moorage.client.leaders.address import LeaderAddress, leader_address
from moorage.client.leaders.port_forward import forwarded
from moorage.client.status import error_from_answer
from moorage.client.transport import Call, Transport

LEASES: Final = (("kube-system", "kube-scheduler"), ("moorage", "moorage"))
"""Leases that are looked at where none is named: of the only scheduler, and of a second one.

Those of all namespaces come afterwards, and count only where their pod is a scheduler for sure:
whoever may write a Lease somewhere would else be sent the credentials of all who ask (decision
110).
"""
_ELSEWHERE: Final = (("fieldSelector", "metadata.namespace!=kube-node-lease"),)
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_DEFAULT: Final = "default"

Leader: TypeAlias = tuple[LeaderAddress, str]
"""A leader of moorage, and ``NAMESPACE/NAME`` of its Lease."""


async def find_leader(
    transport: Transport, leases: tuple[tuple[str, str], ...] = LEASES
) -> Leader | None:
    """Return the first leader of moorage that holds one of some Leases; None without one.

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


async def find_leaders(transport: Transport) -> Sequence[Leader]:
    """Return the holder of each Lease of any namespace that names a pod of moorage, by Lease.

    Empty where the caller may not list the Leases of all namespaces, or no server answers.
    """
    leases = await _answer(transport, Call("GET", resource_path(LEASE_OBJECTS), query=_ELSEWHERE))
    leaders = [
        (address, f"{lease['metadata']['namespace']}/{lease['metadata']['name']}")
        for lease in leases.get("items", ())
        if (address := leader_address(lease)) is not None
    ]
    return sorted(leaders, key=lambda each: each[1])


async def schedulers_among(transport: Transport, leaders: Sequence[Leader]) -> Sequence[Leader]:
    """Return the leaders whose account may bind pods of all namespaces.

    Such a pod has more rights than it could collect by posing as a scheduler. For a caller who may
    not read the pods, or not review accesses, there are none.
    """
    return [each for each in leaders if await _is_scheduler(transport, each[0])]


async def _is_scheduler(transport: Transport, leader: LeaderAddress) -> bool:
    namespace, _, name = leader.pod.partition("/")
    if not (namespace and name):
        return False
    pod = await _answer(transport, Call("GET", resource_path(PODS, namespace, name)))
    if not pod:
        return False
    account = (pod.get("spec") or {}).get("serviceAccountName") or _DEFAULT
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{namespace}:{account}",
            "groups": [
                "system:serviceaccounts",
                f"system:serviceaccounts:{namespace}",
                "system:authenticated",
            ],
            "resourceAttributes": {"verb": "create", "resource": "pods", "subresource": "binding"},
        },
    }
    answer = await _answer(transport, Call("POST", _REVIEWS, body=encode(review)))
    return (answer.get("status") or {}).get("allowed") is True


async def _answer(transport: Transport, call: Call) -> dict[str, Any]:
    """Return the object that a server answers with; empty where it refuses or is away."""
    try:
        answer = await transport.request(call)
    except MoorageError:
        return {}
    return decode_untyped(answer.body) if answer.status in (200, 201) else {}


async def has_leader(transport: Transport) -> bool:
    """Whether a leader is found; not where no server answers, or no Lease may be read."""
    with contextlib.suppress(MoorageError):
        if await find_leader(transport) is not None:
            return True
    return len(await schedulers_among(transport, await find_leaders(transport))) == 1


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
