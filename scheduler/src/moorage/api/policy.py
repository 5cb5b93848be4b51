"""policy/v1 PodDisruptionBudget and scheduling.k8s.io/v1 PriorityClass; read by preemption."""

# ruff: noqa: RUF012  (the codec library gives every struct its own copy of [] and {})
from __future__ import annotations

from moorage.api.meta import ApiObject, ApiStruct, Condition, LabelSelector


class PodDisruptionBudgetSpec(ApiStruct, frozen=True, kw_only=True):
    """The number of matching pods that must stay; counts, or percentages as strings.

    ``selector`` None matches no pod, an empty one every pod of the namespace.
    """

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(ApiStruct, frozen=True, kw_only=True):
    """Numbers of the disruption controller; ``disrupted_pods`` maps pod name to eviction time.

    Scheduling takes these numbers as they are and never recomputes them.
    """

    observed_generation: int = 0
    disrupted_pods: dict[str, str | None] = {}
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    conditions: list[Condition] = []


class PodDisruptionBudget(ApiObject, frozen=True, kw_only=True):
    """policy/v1 PodDisruptionBudget."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(ApiObject, frozen=True, kw_only=True):
    """scheduling.k8s.io/v1 PriorityClass; ``preemption_policy`` "" means PreemptLowerPriority."""

    value: int = 0
    global_default: bool = False
    description: str = ""
    preemption_policy: str = ""
