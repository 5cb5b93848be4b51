"""The size of a measurement of the start, and what was measured."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage_lab.bench.path.standing import Standing


class StartPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a measurement.

    Parameters
    ----------
    nodes
        Number of nodes.
    pods
        Number of pods that run on them.
    streamed
        Whether the server sends lists in the form of a watch; else in pages.
    """

    nodes: int
    pods: int
    streamed: bool

    @property
    def standing(self) -> Standing:
        """The objects of the server: one pod waits for a node."""
        return Standing(nodes=self.nodes, running=self.pods, waiting=1, streams=self.streamed)


class StartResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured.

    Parameters
    ----------
    plan
        The size.
    seconds, cpu_seconds
        From the start of the process to the first binding: time, and processor time of the process.
    memory_mib
        Peak memory of the process until then.
    health_seconds_max
        The longest wait for an answer of ``/livez``, from its first answer on.
    health_checks
        Number of answers.
    """

    plan: StartPlan
    seconds: float
    cpu_seconds: float
    memory_mib: float
    health_seconds_max: float
    health_checks: int

    def as_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    def as_lines(self) -> list[str]:
        """Return the result for people."""
        plan = self.plan
        form = "streamed" if plan.streamed else "in pages"
        return [
            f"{plan.nodes:,} nodes and {plan.pods:,} running pods, {form}",
            f"  first binding after {self.seconds:.1f} s, {self.cpu_seconds:.1f} s of CPU",
            f"  peak memory {self.memory_mib:.0f} MiB",
            f"  longest wait for /livez {self.health_seconds_max:.2f} s, "
            f"of {self.health_checks:,} answers",
        ]
