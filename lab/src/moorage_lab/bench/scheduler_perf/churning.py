"""churn: objects that come, or come and go, next to the other operations.

Source: kubernetes v1.36 test/integration/scheduler_perf (``churnOp``).
"""

from __future__ import annotations

from typing import Final

from moorage.base import aio
from moorage.base.errors import ApiError, NotFoundError
from moorage_lab.bench.scheduler_perf.operations import Churn
from moorage_lab.bench.scheduler_perf.scene import Scene

_INTERVAL_MS: Final = 500


async def churn(scene: Scene, op: Churn, namespace: str) -> None:
    """Create the objects of an operation again and again, until it has enough or is cancelled.

    A creation that the server refuses is skipped, as in the suite: the object may still be there.
    """
    seconds = (op.interval_milliseconds or _INTERVAL_MS) / 1000
    turns = 0
    names: dict[tuple[str, int], str] = {}
    while op.mode == "recreate" or not op.number or turns < op.number:
        await aio.sleep(seconds)
        slot = turns % op.number if op.mode == "recreate" else turns
        for path in op.template_paths:
            name = names.pop((path, slot), "")
            if name:
                await _delete(scene, path, name, namespace)
            else:
                made = await _create(scene, path, namespace)
                if op.mode == "recreate" and made:
                    names[path, slot] = made
        turns += 1


async def _create(scene: Scene, path: str, namespace: str) -> str:
    """Create an object and return its name; "" if the server refuses it."""
    obj = scene.templates.manifest(path, spelling="free")
    resource = await scene.objects.kind_of(obj)
    try:
        made = await scene.objects.create_object(obj, namespace if resource.namespaced else "")
    except ApiError:
        return ""
    return str(made["metadata"]["name"])


async def _delete(scene: Scene, path: str, name: str, namespace: str) -> None:
    resource = await scene.objects.kind_of(scene.templates.manifest(path, spelling="free"))
    where = namespace if resource.namespaced else ""
    try:
        await scene.objects.client.delete(resource, name, namespace=where)
    except NotFoundError:
        return
