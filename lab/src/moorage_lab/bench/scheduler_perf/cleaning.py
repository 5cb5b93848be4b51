"""Removes the objects of a workload from a cluster that goes on after it."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from moorage.api.meta import ObjectReference
from moorage.api.resources import NAMESPACES, PODS, ResourceType
from moorage.base import aio
from moorage.base.errors import MoorageError, NotFoundError
from moorage.client.requests import MERGE_PATCH, Selection, patch_body
from moorage_lab.bench.scheduler_perf.objects import Objects, several

_GONE_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.2


async def remove_all(objects: Objects) -> list[str]:
    """Delete pods, then everything that belongs to no namespace, namespaces last.

    Objects in a namespace go with it. Finalizers that a workload gave its pods are removed, for
    nothing else would; other objects with finalizers may stay for a while.

    Returns
    -------
    list[str]
        A sentence for each object that could not be deleted.
    """
    left: list[str] = []
    client = objects.client
    namespaces = [name for resource, name in objects.created if resource == NAMESPACES]
    pods: list[dict[str, Any]] = []
    for namespace in namespaces:
        # Asked of the server: the watch may not have told of the last pods yet.
        listed: Any = await client.list(PODS, Selection(namespace))
        pods += (each["metadata"] for each in listed["items"])

    async def delete_pod(pod: dict[str, Any]) -> None:
        name, namespace = pod["name"], pod["namespace"]
        try:
            if pod.get("finalizers"):
                await client.patch(
                    PODS,
                    name,
                    patch_body({"metadata": {"finalizers": None}}),
                    namespace=namespace,
                    content_type=MERGE_PATCH,
                )
            key = ObjectReference(namespace=namespace, name=name)
            await client.delete_pod(key, grace_seconds=0)
        except NotFoundError:
            return
        except MoorageError as error:
            left.append(f"pod {namespace}/{name} is still there: {error}")

    async def delete(created: tuple[ResourceType, str]) -> None:
        resource, name = created
        try:
            await client.delete(resource, name)
        except NotFoundError:
            return
        except MoorageError as error:
            left.append(f"{resource.kind} {name} is still there: {error}")

    await several(pods, delete_pod)
    others = [each for each in objects.created if each[0] != NAMESPACES]
    await several(reversed(others), delete)
    await several(((NAMESPACES, name) for name in namespaces), delete)
    staying = [name for name in namespaces if not await _is_gone(objects, name)]
    return [*left, *(f"namespace {name} is still there, with objects" for name in staying)]


async def _is_gone(objects: Objects, namespace: str) -> bool:
    """Wait for the end of a namespace, because the next workload may create it again."""
    try:
        async with asyncio.timeout(_GONE_SECONDS):
            while True:
                await objects.client.get(NAMESPACES, namespace)
                await aio.sleep(_LOOK_SECONDS)
    except NotFoundError:
        return True
    except TimeoutError:
        return False
