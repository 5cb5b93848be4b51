"""Keeps the status of elastic quotas, which ``kubectl get elasticquota`` shows as used.

The scheduler never reads this status: it counts in the snapshot. Rules: scheduler-plugins
``pkg/controllers/elasticquota_controller.go`` of 2026-08: the first quota of a namespace gets the
requests of the running pods. Unlike upstream, sidecars and overhead count as they do for placing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from moorage.api.pod import Pod
from moorage.api.quantity import from_nano
from moorage.api.requests import pod_requests
from moorage.api.resources import ELASTIC_QUOTAS, PODS
from moorage.client.objects import Key
from moorage.controllers.controller import Controller, ControllerInputs
from moorage.workloads.objects import ViewedPod, Whole

_BYTES: Final = ("memory", "ephemeral-storage", "hugepages-")


class ElasticQuotaController(Controller):
    """Keeps ``status.used`` of ElasticQuotas of scheduling.x-k8s.io."""

    def __init__(self, around: ControllerInputs) -> None:
        super().__init__(around, name="ElasticQuotaController", resource=ELASTIC_QUOTAS)
        self._quotas = around.views.view_of(ELASTIC_QUOTAS, Whole)
        self._running: dict[str, dict[Key, Pod]] = {}
        self._of_namespace: dict[str, set[Key]] = {}
        self._quotas.tell(self._quota_changed)
        around.views.view_of(PODS, ViewedPod).tell(self._pod_changed)

    async def sync(self, key: Key) -> float | None:
        """Write the use of the pods in a quota's namespace, if the use changed."""
        quota = self._quotas.objects.get(key)
        if quota is None or key != min(self._of_namespace[quota.namespace]):
            return None
        used = quota_used(quota, self._running.get(quota.namespace, {}).values())
        if used != quota.status.get("used"):
            # A merge patch keeps the fields that it does not name.
            gone = dict.fromkeys(quota.status.get("used") or {})
            await self.write_status(quota, {"used": {**gone, **used}})
            text = f"Elastic Quota {quota.namespace}/{quota.name} synced successfully"
            self.emit_event(quota, "Synced", text)
        return None

    def _quota_changed(self, old: Whole | None, new: Whole | None) -> None:
        if (obj := new or old) is None:
            return
        of_namespace = self._of_namespace.setdefault(obj.namespace, set())
        (of_namespace.discard if new is None else of_namespace.add)((obj.namespace, obj.name))
        self._look_at(obj.namespace)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if (pod := new or old) is None:
            return
        running = self._running.setdefault(pod.namespace, {})
        running.pop(pod.key, None)
        if new is not None and new.status.phase == "Running":
            running[pod.key] = new
        if not running:
            del self._running[pod.namespace]
        self._look_at(pod.namespace)

    def _look_at(self, namespace: str) -> None:
        if keys := self._of_namespace.get(namespace):
            self.queue.add(min(keys))


def quota_used(quota: Whole, running: Iterable[Pod]) -> dict[str, str]:
    """Return the requests of pods by resource; bounded resources without a request are 0.

    Parameters
    ----------
    quota
        The ElasticQuota.
    running
        The running pods of its namespace.
    """
    bounds: Iterable[Mapping[str, Any]] = (quota.spec.get(each) or {} for each in ("min", "max"))
    total = {name: 0 for bound in bounds for name in bound}
    for pod in running:
        for name, nano in pod_requests(pod, use_status=True, pod_level=True).items():
            total[name] = total.get(name, 0) + nano
    return {name: from_nano(nano, binary=name.startswith(_BYTES)) for name, nano in total.items()}
