"""Keeps the status of disruption budgets: watches, asks ``disruption_steps``, and writes.

Evictions and preemption rely on this status. One loop does all work: a change makes the budgets of
its namespace due. The watch confirms each write.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from moorage.api.meta import ApiObject, OwnerReference
from moorage.api.pod import Pod
from moorage.api.policy import PodDisruptionBudget
from moorage.api.resources import POD_DISRUPTION_BUDGETS, PODS, ResourceType
from moorage.api.selectors import NOTHING, Selector, compile_label_selector
from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND
from moorage.base.errors import ConflictError, MoorageError, NotFoundError
from moorage.client.objects import Key
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage.controllers.controller import ControllerInputs
from moorage.workloads.disruption_steps import (
    BudgetError,
    Due,
    Scale,
    budget_due,
    no_target_condition,
    stale_target_ns,
)
from moorage.workloads.objects import ViewedPod, Whole
from moorage_sandbox.controllers.changed_objects import ChangedObjects
from moorage_sandbox.controllers.scales import Scales

_log = logging.getLogger(__name__)

# Pause after a failed call that may succeed later; a guess.
_RETRY_SECONDS: Final = 1.0
# Pause between two rounds, so that a rollout of thousands of pods is not counted once for each pod.
# A guess, well below the pause before an eviction is tried again.
_ROUND_SECONDS: Final = 0.05


class DisruptionController:
    """Writes the status of every PodDisruptionBudget.

    Parameters
    ----------
    around
        The surroundings.

    Attributes
    ----------
    ready
        Set once everything has been listed.
    """

    def __init__(self, around: ControllerInputs) -> None:
        self._client = around.client
        self._clock = around.clock
        self._views = views = around.views
        self._wake = asyncio.Event()
        budgets = views.view_of(POD_DISRUPTION_BUDGETS, PodDisruptionBudget)
        self._budgets = ChangedObjects(budgets, self._budget_changed)
        self._pods = ChangedObjects(views.view_of(PODS, ViewedPod), self._pod_changed)
        self._scales = Scales(around.client, views, self._owner_changed)
        # Names of the pods and of the budgets in each namespace, to find the budgets of a change.
        self._pods_in: dict[str, dict[str, None]] = {}
        self._budgets_in: dict[str, dict[str, None]] = {}
        self._selectors: dict[Key, Selector] = {}
        self._due: dict[Key, None] = {}
        # Wall-clock time of the next check without a change.
        self._again_ns: dict[Key, int] = {}
        self._stale_ns: dict[Key, int] = {}
        self.ready = asyncio.Event()

    # -- what changed --------------------------------------------------------------------------

    def _budget_changed(self, budget: PodDisruptionBudget) -> None:
        key = (budget.namespace, budget.name)
        names = self._budgets_in.setdefault(budget.namespace, {})
        if key in self._budgets.objects:
            names[budget.name] = None
            self._selectors[key] = _selector(budget)
            self._make_due(key)
        else:
            names.pop(budget.name, None)
            for kept in (self._selectors, self._due, self._again_ns):
                kept.pop(key, None)

    def _pod_changed(self, pod: Pod) -> None:
        key = (pod.namespace, pod.name)
        names = self._pods_in.setdefault(pod.namespace, {})
        stale_ns = None
        if key in self._pods.objects:
            names[pod.name] = None
            stale_ns = stale_target_ns(self._pods.objects[key])
        else:
            names.pop(pod.name, None)
        if stale_ns is None:
            self._stale_ns.pop(key, None)
        else:
            self._stale_ns[key] = stale_ns
            self._wake.set()
        for name in self._budgets_in.get(pod.namespace, ()):
            budget_key = (pod.namespace, name)
            if self._selectors[budget_key].matches(pod.metadata.labels):
                self._make_due(budget_key)

    def _owner_changed(self, owner: Whole) -> None:
        for name in self._budgets_in.get(owner.namespace, ()):
            self._make_due((owner.namespace, name))

    def _make_due(self, key: Key) -> None:
        self._due[key] = None
        self._wake.set()

    # -- working -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run the controller until cancelled."""
        await self._views.synced()
        self.ready.set()
        while True:
            await self._something_due()
            failed = False
            due, self._due = self._due, {}
            for key in due:
                failed |= not await self._carried_out(key)
            for key in self._elapsed(self._stale_ns):
                failed |= not await self._relieved(key)
            await aio.sleep(_RETRY_SECONDS if failed else _ROUND_SECONDS)

    async def _something_due(self) -> None:
        """Wait for a change, or for the time of the next check."""
        self._wake.clear()
        if not self._due:
            ends = (*self._again_ns.values(), *self._stale_ns.values())
            wait_ns = min(ends, default=0) - self._clock.now_ns()
            try:
                async with asyncio.timeout(max(wait_ns, 0) / NS_PER_SECOND if ends else None):
                    await self._wake.wait()
            except TimeoutError:
                pass
        self._due.update(dict.fromkeys(self._elapsed(self._again_ns)))

    def _elapsed(self, times: dict[Key, int]) -> list[Key]:
        """Remove and return the keys that are due."""
        now_ns = self._clock.now_ns()
        keys = [key for key, at_ns in times.items() if at_ns <= now_ns]
        for key in keys:
            del times[key]
        return keys

    async def _carried_out(self, key: Key) -> bool:
        """Bring a budget's status up to date; False when the write is to be retried."""
        try:
            due = await self._judged(key)
            if due is None:
                return True
            budget = self._budgets.objects[key]
            if due.again_ns is not None:
                self._again_ns[key] = due.again_ns
            if due.status is not None:
                await self._write_status(POD_DISRUPTION_BUDGETS, budget, due.status)
        except (ConflictError, NotFoundError) as late:
            # The watch will show the newer version and make the budget due again.
            _log.debug("too late: %s", late)
        except MoorageError as problem:
            _log.warning("disruption budget %s: %s", "/".join(key), problem)
            self._make_due(key)
            return False
        return True

    async def _judged(self, key: Key) -> Due | None:
        """Return the changes a budget needs; None for a deleted budget."""
        if key not in self._budgets.objects:
            return None
        owners = [
            owner for pod in self._members(key) if (owner := pod.metadata.controller) is not None
        ]
        scales = {}
        if self._needs_scale(key):
            scales = await self._scales.of_all(owners, key[0])
        # Awaiting took time: read the clock again, so that all values below are of one moment.
        budget = self._budgets.objects.get(key)
        if budget is None:
            return None

        def scale_of(owner: OwnerReference) -> Scale | None:
            found = scales.get(owner.uid)
            if isinstance(found, BudgetError):
                raise found
            return found

        return budget_due(budget, self._members(key), scale_of, self._clock.now_ns())

    def _members(self, key: Key) -> list[Pod]:
        namespace, _ = key
        pods, selector = self._pods.objects, self._selectors[key]
        found = (pods[namespace, name] for name in self._pods_in.get(namespace, ()))
        return [pod for pod in found if selector.matches(pod.metadata.labels)]

    def _needs_scale(self, key: Key) -> bool:
        spec = self._budgets.objects[key].spec
        return spec.max_unavailable is not None or isinstance(spec.min_available, str)

    async def _relieved(self, key: Key) -> bool:
        """Set DisruptionTarget of a pod to False; return False when the write is to be retried."""
        pod = self._pods.objects.get(key)
        if pod is None:
            return True
        status = {"conditions": [no_target_condition(self._clock.now_ns())]}
        try:
            await self._client.patch(
                PODS,
                pod.name,
                patch_body({"metadata": {"uid": pod.metadata.uid}, "status": status}),
                namespace=pod.namespace,
                subresource="status",
            )
        except (ConflictError, NotFoundError) as late:
            _log.debug("too late: %s", late)
        except MoorageError as problem:
            _log.warning("pod %s: %s", "/".join(key), problem)
            self._stale_ns[key] = self._clock.now_ns()
            return False
        return True

    async def _write_status(
        self, resource: ResourceType, obj: ApiObject, status: dict[str, object]
    ) -> None:
        version = {"resourceVersion": obj.metadata.resource_version}
        await self._client.patch(
            resource,
            obj.name,
            patch_body({"metadata": version, "status": status}),
            namespace=obj.namespace,
            subresource="status",
            content_type=MERGE_PATCH,
        )


def _selector(budget: PodDisruptionBudget) -> Selector:
    try:
        return compile_label_selector(budget.spec.selector)
    except ValueError as problem:
        _log.warning("disruption budget %s/%s: %s", budget.namespace, budget.name, problem)
        return NOTHING
