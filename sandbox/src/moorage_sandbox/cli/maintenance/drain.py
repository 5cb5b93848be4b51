"""Evicts the pods of a node, and waits until they are gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from moorage.api.pod import MIRROR
from moorage.api.resources import PODS
from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND
from moorage.base.errors import MoorageError, NotFoundError, TooManyRequestsError, UsageError
from moorage.cli.session import Session
from moorage.client.requests import Selection
from moorage.client.status import error_from_answer
from moorage.client.transport import Call

_RETRY_SECONDS: Final = 5.0
"""kubectl v1.36 pkg/drain: an eviction that a budget refuses is tried again so much later."""
_LOOK_SECONDS: Final = 0.2
_FINISHED: Final = ("Succeeded", "Failed")

Pod = dict[str, Any]


class DrainOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``moorage drain``, as of ``kubectl drain``."""

    ignore_daemonsets: bool = False
    delete_emptydir_data: bool = False
    force: bool = False
    grace_period: int | None = None
    timeout_seconds: float = 0.0
    """0 waits without end."""


async def drain_node(
    session: Session, node: str, options: DrainOptions, show_line: Callable[[str], None]
) -> None:
    """Evict the pods of a node, which is cordoned, and wait until they are gone.

    Raises
    ------
    UsageError
        A pod needs a flag that is not given; no pod is evicted.
    MoorageError
        The time is over, or the server refuses.

    Notes
    -----
    Mirrors the filters of kubernetes v1.36 staging/src/k8s.io/kubectl/pkg/drain/filters.go.
    """
    answer_list: Any = await session.client.list(
        PODS, Selection(field_selector=f"spec.nodeName={node}")
    )
    pods = pods_to_evict(answer_list["items"], options)
    begin_ns = session.clock.monotonic_ns()

    def check_time() -> None:
        waited = (session.clock.monotonic_ns() - begin_ns) / NS_PER_SECOND
        if options.timeout_seconds and waited >= options.timeout_seconds:
            raise MoorageError(f"node {node} is not drained after {options.timeout_seconds:g} s")

    rest = pods
    while rest:
        rest = [pod for pod in rest if not await _evict(session, pod, options, show_line)]
        if rest:
            check_time()
            await aio.sleep(_RETRY_SECONDS)
    for pod in pods:
        while await _is_there(session, pod):
            check_time()
            await aio.sleep(_LOOK_SECONDS)


def pods_to_evict(pods: Sequence[Pod], options: DrainOptions) -> list[Pod]:
    """Return the pods that a drain evicts.

    Raises
    ------
    UsageError
        A pod needs a flag that is not given; the message names the flag and the pods.
    """
    needs: dict[str, list[str]] = {}
    evictions = []
    for pod in pods:
        metadata = pod["metadata"]
        if MIRROR in (metadata.get("annotations") or {}):
            continue
        flags = _required_flags(pod)
        absent = [flag for flag in flags if not getattr(options, flag)]
        for flag in absent:
            needs.setdefault(flag, []).append(f"{metadata['namespace']}/{metadata['name']}")
        if not absent and "ignore_daemonsets" not in flags:
            evictions.append(pod)
    if needs:
        texts = [
            f"--{flag.replace('_', '-')} for {', '.join(sorted(names))}"
            for flag, names in needs.items()
        ]
        raise UsageError(f"the drain needs {'; '.join(texts)}")
    return evictions


def _required_flags(pod: Pod) -> list[str]:
    """Return the fields of `DrainOptions` that a pod needs to be evicted or left."""
    if pod.get("status", {}).get("phase") in _FINISHED:
        return []
    owners = pod["metadata"].get("ownerReferences") or ()
    controller = next((each for each in owners if each.get("controller")), None)
    if controller is not None and controller["kind"] == "DaemonSet":
        return ["ignore_daemonsets"]
    flags = [] if controller is not None else ["force"]
    volumes = pod["spec"].get("volumes") or ()
    if any(each.get("emptyDir") is not None for each in volumes):
        flags.append("delete_emptydir_data")
    return flags


async def _evict(
    session: Session, pod: Pod, options: DrainOptions, show_line: Callable[[str], None]
) -> bool:
    """Evict a pod; return False if a budget refuses for now."""
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    body: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"namespace": namespace, "name": name},
    }
    if options.grace_period is not None:
        body["deleteOptions"] = {"gracePeriodSeconds": options.grace_period}
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    answer = await session.transport.request(Call("POST", path, body=msgspec.json.encode(body)))
    if answer.status < 300:
        show_line(f"pod/{name} evicted")
        return True
    error = error_from_answer(answer)
    if isinstance(error, NotFoundError):
        return True
    if isinstance(error, TooManyRequestsError):
        show_line(f"pod/{name}: {error}; trying again in {_RETRY_SECONDS:g} s")
        return False
    raise error


async def _is_there(session: Session, pod: Pod) -> bool:
    metadata = pod["metadata"]
    try:
        live: Any = await session.client.get(
            PODS, metadata["name"], namespace=metadata["namespace"]
        )
    except NotFoundError:
        return False
    return bool(live["metadata"]["uid"] == metadata["uid"])
