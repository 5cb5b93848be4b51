"""HorizontalPodAutoscalers: scales workloads by their use of cpu and memory.

Rules: kubernetes v1.36 pkg/controller/podautoscaler/horizontal.go. The formula is in
``autoscaler_metrics``, limits and windows are in ``autoscaler_limits``. Measurements are read from
``metrics.k8s.io``; metrics of the types Pods, Object and External are refused, because no server
here has such measurements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from moorage.api.pod import Pod
from moorage.api.quantity import NANO, from_nano, parse_quantity
from moorage.api.resources import HORIZONTAL_POD_AUTOSCALERS, PODS, resource_path
from moorage.api.selectors import parse_label_selector
from moorage.api.usage import POD_METRICS
from moorage.base.clock import rfc3339
from moorage.base.errors import MoorageError
from moorage.client.objects import Key
from moorage.client.requests import MERGE_PATCH, Selection, patch_body
from moorage.controllers.controller import Controller, ControllerInputs
from moorage.workloads.autoscaler_limits import Bounded, ScalingMemory
from moorage.workloads.jobs.job_steps import with_condition
from moorage.workloads.objects import Json, ViewedPod, Whole
from moorage_sandbox.controllers.autoscaler_metrics import MetricError, Proposal, Target, propose
from moorage_sandbox.controllers.scales import scaled_resource

_SYNC_SECONDS: Final = 15.0  # --horizontal-pod-autoscaler-sync-period
_ABLE, _ACTIVE, _LIMITED = "AbleToScale", "ScalingActive", "ScalingLimited"


class _Wanted(msgspec.Struct, frozen=True):
    """The number of replicas that the metrics of an autoscaler call for together."""

    replicas: int
    metric: str
    statuses: list[Json]


class AutoscalerController(Controller):
    """Keeps the scale of the workloads that autoscalers name."""

    def __init__(self, around: ControllerInputs) -> None:
        super().__init__(
            around, name="horizontal-pod-autoscaler", resource=HORIZONTAL_POD_AUTOSCALERS
        )
        self._autoscalers = around.views.view_of(HORIZONTAL_POD_AUTOSCALERS, Whole)
        self._pods = around.views.view_of(PODS, ViewedPod)
        self._memories: dict[str, ScalingMemory] = {}
        self._autoscalers.tell(self._changed_later)

    def _changed_later(self, old: Whole | None, new: Whole | None) -> None:
        """Queue a changed autoscaler after a sync period, as upstream: every write is a change."""
        obj = new or old
        assert obj is not None, "a view tells of something"
        self.queue.add_after((obj.namespace, obj.name), _SYNC_SECONDS)

    async def sync(self, key: Key) -> float | None:
        """Compare measured use with the target, scale the workload, and write the status."""
        autoscaler = self._autoscalers.objects.get(key)
        if autoscaler is None:
            self._memories = {
                each.metadata.uid: self._memories[each.metadata.uid]
                for each in self._autoscalers.objects.values()
                if each.metadata.uid in self._memories
            }
            return None
        conditions: list[Json] = list(autoscaler.status.get("conditions") or [])
        status: Json = {"observedGeneration": autoscaler.metadata.generation}
        try:
            await self._scale(autoscaler, status, conditions)
        finally:
            status["conditions"] = conditions
            status.setdefault("desiredReplicas", autoscaler.status.get("desiredReplicas") or 0)
            await self.write_status(autoscaler, status)
        return _SYNC_SECONDS

    async def _scale(self, autoscaler: Whole, status: Json, conditions: list[Json]) -> None:
        reference = autoscaler.spec["scaleTargetRef"]
        name = reference["name"]
        try:
            resource = await scaled_resource(
                self.client, reference.get("apiVersion") or "v1", reference["kind"]
            )
            path = resource_path(resource, autoscaler.namespace, name, "scale")
            scale: Any = await self.client.read_path(path)
        except MoorageError as problem:
            text = f"the HPA controller was unable to get the target's current scale: {problem}"
            self._say(conditions, _ABLE, ("False", "FailedGetScale", text))
            self.emit_event(autoscaler, "FailedGetScale", str(problem), kind="Warning")
            return
        said = (
            "True",
            "SucceededGetScale",
            "the HPA controller was able to get the target's scale",
        )
        self._say(conditions, _ABLE, said)
        current = int((scale.get("spec") or {}).get("replicas") or 0)
        status["currentReplicas"] = int((scale.get("status") or {}).get("replicas") or 0)
        status["desiredReplicas"] = current
        desired, reason = await self._desired(autoscaler, scale, current, status, conditions)
        if desired is None or desired == current:
            return
        await self.client.patch(
            resource,
            name,
            patch_body({"spec": {"replicas": desired}}),
            namespace=autoscaler.namespace,
            subresource="scale",
            content_type=MERGE_PATCH,
        )
        self._memory(autoscaler).changed(desired - current, self.clock.now_ns())
        text = f"New size: {desired}; reason: {reason}"
        self.emit_event(autoscaler, "SuccessfulRescale", text, action=f"ScaleTo{desired}")
        text = f"the HPA controller was able to update the target scale to {desired}"
        self._say(conditions, _ABLE, ("True", "SucceededRescale", text))
        status |= {"desiredReplicas": desired, "lastScaleTime": rfc3339(self.clock.now_ns())}

    async def _desired(
        self, autoscaler: Whole, scale: Json, current: int, status: Json, conditions: list[Json]
    ) -> tuple[int | None, str]:
        """Return the wanted number of replicas and the reason; None when no number is known."""
        least, most = (
            int(autoscaler.spec.get("minReplicas") or 1),
            int(autoscaler.spec["maxReplicas"]),
        )
        if current == 0:
            text = "scaling is disabled since the replica count of the target is zero"
            self._say(conditions, _ACTIVE, ("False", "ScalingDisabled", text))
            return None, ""
        if current > most:
            return most, "Current number of replicas above Spec.MaxReplicas"
        if current < least:
            return least, "Current number of replicas below Spec.MinReplicas"
        wanted = await self._wanted(autoscaler, scale, current, conditions)
        if wanted is None:
            return None, ""
        status["currentMetrics"] = wanted.statuses
        bounded: Bounded = self._memory(autoscaler).bound(
            autoscaler.spec, current, wanted.replicas, now_ns=self.clock.now_ns()
        )
        self._say(conditions, _ABLE, ("True", *bounded.able))
        self._say(conditions, _LIMITED, bounded.limited)
        above = bounded.replicas > current
        reason = f"{wanted.metric} above target" if above else "All metrics below target"
        return bounded.replicas, reason

    async def _wanted(
        self, autoscaler: Whole, scale: Json, current: int, conditions: list[Json]
    ) -> _Wanted | None:
        """Evaluate every metric; the largest number of replicas counts."""
        selector = parse_label_selector((scale.get("status") or {}).get("selector") or "")
        pods = [
            pod
            for pod in self._pods.in_namespace(autoscaler.namespace)
            if selector.matches(pod.metadata.labels)
        ]
        best, statuses, problems = _Wanted(0, "", []), [], list[tuple[str, str]]()
        for metric in autoscaler.spec.get("metrics") or ():
            try:
                target, label = _target(metric)
                proposal = await self._proposal(autoscaler, target, current, pods, scale)
            except (MetricError, MoorageError) as problem:
                problems.append((f"FailedGet{metric['type']}Metric", str(problem)))
                statuses.append({"type": metric["type"]})
                continue
            statuses.append(_status(metric, proposal))
            if proposal.replicas > best.replicas:
                best = _Wanted(proposal.replicas, label, statuses)
        # As upstream: with a metric missing, replicas may be added and not be taken away.
        if problems and best.replicas < current:
            reason, text = problems[0]
            message = f"the HPA was unable to compute the replica count: {text}"
            self._say(conditions, _ACTIVE, ("False", reason, message))
            self.emit_event(autoscaler, reason, text, kind="Warning")
            return None
        message = f"the HPA was able to successfully calculate a replica count from {best.metric}"
        self._say(conditions, _ACTIVE, ("True", "ValidMetricFound", message))
        return msgspec.structs.replace(best, statuses=statuses)

    async def _proposal(
        self, autoscaler: Whole, target: Target, current: int, pods: Sequence[Pod], scale: Json
    ) -> Proposal:
        selection = Selection(autoscaler.namespace, str(scale["status"].get("selector") or ""))
        listed: Any = await self.client.list(POD_METRICS, selection)
        used = {each["metadata"]["name"]: _used(each, target) for each in listed["items"]}
        if not used:
            raise MetricError(
                f"unable to get metrics for resource {target.resource}: no metrics returned from "
                "resource metrics API"
            )
        known = {name: amount for name, amount in used.items() if amount is not None}
        return propose(target, current, pods, known, now_ns=self.clock.now_ns())

    def _memory(self, autoscaler: Whole) -> ScalingMemory:
        return self._memories.setdefault(autoscaler.metadata.uid, ScalingMemory())

    def _say(self, conditions: list[Json], kind: str, said: tuple[str, str, str]) -> None:
        told = with_condition(conditions, kind, said, self.clock.now_ns())
        # The conditions of a Job have one field more.
        conditions[:] = [
            {name: value for name, value in each.items() if name != "lastProbeTime"}
            for each in told
        ]


def _target(metric: Mapping[str, Any]) -> tuple[Target, str]:
    """Return the target of a metric, and its name in messages."""
    kind = metric.get("type")
    source = {"Resource": "resource", "ContainerResource": "containerResource"}.get(str(kind))
    if source is None:
        raise MetricError(
            f"metrics of type {kind} are not served here; use Resource or ContainerResource"
        )
    metric_source = metric[source]
    target, resource = metric_source.get("target") or {}, str(metric_source["name"])
    label = f"{resource} resource"
    if source == "containerResource":
        label = f"{resource} container resource"
    if target.get("averageUtilization") is not None:
        percent = int(target["averageUtilization"])
        found = Target(resource, metric_source.get("container", ""), percent=percent)
        return found, f"{label} utilization (percentage of request)"
    if target.get("averageValue") is None:
        raise MetricError("neither averageUtilization nor averageValue is given")
    milli = parse_quantity(target["averageValue"]) * 1000 // NANO
    return Target(resource, metric_source.get("container", ""), milli=max(1, milli)), label


def _used(measured: Json, target: Target) -> int | None:
    """Return the use of a measured pod, thousandths; None without a measurement."""
    amounts = [
        parse_quantity(each["usage"][target.resource])
        for each in measured["containers"]
        if target.container in ("", each["name"]) and target.resource in each["usage"]
    ]
    return sum(amounts) * 1000 // NANO if amounts else None


def _status(metric: Mapping[str, Any], proposal: Proposal) -> Json:
    source = "containerResource" if metric["type"] == "ContainerResource" else "resource"
    average = from_nano(proposal.average_milli * NANO // 1000, binary=False)
    current: Json = {"averageValue": average}
    if proposal.percent is not None:
        current["averageUtilization"] = proposal.percent
    told = {"name": metric[source]["name"], "current": current}
    if source == "containerResource":
        told["container"] = metric[source]["container"]
    return {"type": metric["type"], source: told}
