"""The eviction subresource: deleting a pod as far as its disruption budget allows.

An eviction respects the disruption budget, a delete does not. The disruption controller writes the
budget's status. An eviction is noted in the status, so two in a row do not count on the same
healthy pod. Rules, their order and texts follow kubernetes v1.36
pkg/registry/core/pod/storage/eviction.go. Its retries are not needed, because one call runs at a
time.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from moorage.api.codec import from_dict
from moorage.api.meta import Condition
from moorage.api.policy import PodDisruptionBudget
from moorage.api.resources import POD_DISRUPTION_BUDGETS, PODS
from moorage.api.selectors import compile_label_selector
from moorage.base.clock import rfc3339
from moorage.base.errors import DecodeError
from moorage.kinds.built_in import subresource_body
from moorage.kinds.kind import Obj
from moorage.kinds.status import (
    StatusError,
    bad_request,
    too_many_requests,
    unsupported_media_type,
)
from moorage.kinds.tree import put_condition
from moorage_sandbox.apiserver.catalog import Target
from moorage_sandbox.apiserver.verbs.deleting import (
    DeleteOptions,
    Deleter,
    Preconditions,
    options_of,
    precondition_fault,
)
from moorage_sandbox.apiserver.verbs.reading import get_record
from moorage_sandbox.apiserver.wire.bodies import decode_json, typed
from moorage_sandbox.apiserver.wire.negotiate import JSON, SPOKEN_BUILT_IN, content_type
from moorage_sandbox.apiserver.wire.requests import Request
from moorage_sandbox.apiserver.world import World

_EVICTION, _ = subresource_body(PODS, "eviction")
_OLDER: Final = "policy/v1beta1"
_REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)
# Upstream's delay until the controller has looked at the budget (a guess there too).
_RETRY_SECONDS: Final = 10
# A longer list means that the disruption controller lags behind (MaxDisruptedPodSize).
_DISRUPTED_PODS_MAX: Final = 2000
_CONDITION: Final = "DisruptionAllowed"
_EXHAUSTED: Final[Obj] = {
    "type": _CONDITION,
    "status": "False",
    "reason": "InsufficientPods",
    "message": "",
}
_EVICTED: Final[Obj] = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_NEGATIVE: Final = "pdb disruptions allowed is negative"
_TOO_BIG: Final = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
_TOO_BIG_CAUSE: Final = "too many pending evictions not confirmed by PDB controller"


def evict(
    world: World, deleter: Deleter, target: Target, request: Request, *, dry_run: bool
) -> None:
    """Delete a pod if its budget allows, and set the pod's conditions.

    Raises
    ------
    StatusError
        400: not an Eviction, or of another pod. 403: the budget's status is malformed. 404: no
        such pod. 409: a precondition does not hold. 429: the budget allows no disruption now.
        500: several budgets match.
    """
    options = _options(_read(request), target, dry_run=dry_run)
    record = get_record(world.store, target)
    pod = record.decode()
    budgets = [] if _is_past_budgets(pod) else _budgets_of(world, pod)
    if len(budgets) > 1:
        raise StatusError(500, "", _SEVERAL)
    if not budgets or _does_not_count(pod, budgets[0]):
        _mark_and_delete(world, deleter, target, options)
        return
    _spend(world, budgets[0], target.name, dry_run=bool(options.dry_run))
    _mark_and_delete(world, deleter, target, options)


# -- the body --------------------------------------------------------------------------------------


def _read(request: Request) -> Obj:
    if content_type(request.headers.get("content-type", "")) not in {"", JSON}:
        raise unsupported_media_type(SPOKEN_BUILT_IN)
    raw: Any = decode_json(request)
    if isinstance(raw, dict) and raw.get("apiVersion") == _OLDER:
        raw["apiVersion"] = _EVICTION.api_version
    return typed(raw, _EVICTION)


def _options(eviction: Obj, target: Target, *, dry_run: bool) -> DeleteOptions:
    """Return the options of the delete; the call or the body may ask for a dry run."""
    meta = eviction["metadata"]
    if meta.get("name") != target.name:
        raise bad_request("name in URL does not match name in Eviction object")
    if meta.get("namespace", "") not in {"", target.namespace}:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    options = options_of(eviction.get("deleteOptions", {}))
    return msgspec.structs.replace(options, dry_run=("All",)) if dry_run else options


# -- budgets ---------------------------------------------------------------------------------------


def _is_past_budgets(pod: Obj) -> bool:
    """Whether no budget protects a pod: it is pending, has ended, or is being deleted."""
    phase = (pod.get("status") or {}).get("phase")
    leaving = pod["metadata"].get("deletionTimestamp")
    return bool(leaving) or phase in {"Pending", "Succeeded", "Failed"}


def _budgets_of(world: World, pod: Obj) -> list[PodDisruptionBudget]:
    """Return the budgets that match a pod; an unreadable budget matches no pod."""
    meta = pod["metadata"]
    labels = meta.get("labels") or {}
    budgets = []
    for obj in world.stored_objects(POD_DISRUPTION_BUDGETS.plural, meta["namespace"]):
        try:
            budget = from_dict(PodDisruptionBudget, obj)
            selector = compile_label_selector(budget.spec.selector)
        except (DecodeError, ValueError):
            continue
        if selector.matches(labels):
            budgets.append(budget)
    return budgets


def _does_not_count(pod: Obj, budget: PodDisruptionBudget) -> bool:
    """Whether a pod that is not ready may be evicted without counting as a disruption."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    if any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions):
        return False
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    return budget.status.current_healthy >= budget.status.desired_healthy > 0


def _spend(world: World, budget: PodDisruptionBudget, pod_name: str, *, dry_run: bool) -> None:
    """Take one disruption from a budget and note the pod in its status."""
    _check_allows(budget)
    if dry_run:
        return
    served = world.catalog.by_plural(POD_DISRUPTION_BUDGETS.plural)
    stored = get_record(
        world.store, Target(served=served, namespace=budget.namespace, name=budget.name)
    ).decode()
    now = rfc3339(world.clock.now_ns())
    status = stored["status"]
    status["disruptionsAllowed"] = budget.status.disruptions_allowed - 1
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod_name: now}
    if status["disruptionsAllowed"] == 0:
        seen = {"observedGeneration": budget.status.observed_generation}
        put_condition(status, _EXHAUSTED | seen, now)
    world.store_form(served, stored)


def _check_allows(budget: PodDisruptionBudget) -> None:
    """Check the budget's status.

    Raises
    ------
    StatusError
        403: it is malformed. 429: it is not up to date, or allows no disruption.
    """
    status, name = budget.status, budget.name
    if status.observed_generation < budget.metadata.generation:
        cause = f"The disruption budget {name} is still being processed by the server."
        raise _too_many(cause, retry_seconds=_RETRY_SECONDS)
    if status.disruptions_allowed < 0:
        raise _forbidden(name, _NEGATIVE, _NEGATIVE)
    if len(status.disrupted_pods) > _DISRUPTED_PODS_MAX:
        raise _forbidden(name, _TOO_BIG, _TOO_BIG_CAUSE)
    if status.disruptions_allowed == 0:
        raise _too_many(_why_nothing(budget), retry_seconds=0)


def _forbidden(name: str, nonsense: str, why: str) -> StatusError:
    # Upstream names the budget's type in the singular here.
    message = f'poddisruptionbudget.policy "{name}" is forbidden: {nonsense}'
    cause = f"The disruption budget {name} does not allow evicting pods currently: {why}"
    details: Obj = {"name": name, "group": "policy", "kind": "poddisruptionbudget"}
    details["causes"] = [{"reason": "DisruptionBudget", "message": cause}]
    return StatusError(403, "Forbidden", message, details=details)


def _why_nothing(budget: PodDisruptionBudget) -> str:
    status = budget.status
    says = next((c for c in status.conditions if c.type == _CONDITION), Condition())
    refuses = says.status == "False" and bool(says.message)
    begin = f"The disruption budget {budget.name}"
    # Counts are unreliable when the controller could not update them.
    if refuses and says.reason == "SyncFailed":
        return (
            f"{begin} does not allow evicting pods currently because it failed sync: {says.message}"
        )
    if status.current_healthy <= status.desired_healthy:
        return (
            f"{begin} needs {status.desired_healthy} healthy pods "
            f"and has {status.current_healthy} currently"
        )
    if refuses:
        return f"{begin} does not allow evicting pods currently ({says.reason}): {says.message}"
    return f"{begin} does not allow evicting pods currently"


def _too_many(cause: str, *, retry_seconds: int) -> StatusError:
    causes = [{"reason": "DisruptionBudget", "message": cause}]
    return too_many_requests(_REFUSED, retry_after_seconds=retry_seconds, causes=causes)


# -- the pod ---------------------------------------------------------------------------------------


def _mark_and_delete(
    world: World, deleter: Deleter, target: Target, options: DeleteOptions
) -> None:
    if not options.dry_run:
        record = get_record(world.store, target)
        wanted = options.preconditions
        if why := precondition_fault(record, wanted.uid or None, wanted.resource_version or None):
            raise _conflict(record.name, why)
        pod = record.decode()
        now = rfc3339(world.clock.now_ns())
        put_condition(pod.setdefault("status", {}), _EVICTED, now)
        world.store_form(target.served, pod)
        # Marking the pod gave it a new version, which the caller cannot know.
        options = msgspec.structs.replace(options, preconditions=Preconditions())
    deleter.delete_object(target, options)


def _conflict(name: str, why: str) -> StatusError:
    # Upstream names the kind here, where it otherwise names the resource.
    message = f'Operation cannot be fulfilled on Pod "{name}": {why}'
    return StatusError(409, "Conflict", message, details={"name": name, "kind": "Pod"})
