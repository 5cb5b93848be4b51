"""Runs a sandbox that is ready to start, with its record and a context in the user's kubeconfig."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from moorage_sandbox.cli.up.life_options import LifeOptions, user_kubeconfig

if TYPE_CHECKING:
    from moorage_sandbox.sandbox.lines import View
    from moorage_sandbox.sandbox.processes.parts import Parts
    from moorage_sandbox.sandbox.up import UpPlan


def live_through(plan: UpPlan, parts: Parts, view: View, life: LifeOptions) -> None:
    """Run a sandbox until it ends, and leave no record and no context behind.

    Raises
    ------
    UsageError
        A sandbox with the same kubeconfig runs already, or a file cannot be written.
    MoorageError
        A part failed.
    """
    from moorage.base.clock import SystemClock, rfc3339
    from moorage.base.process import run_loop
    from moorage.base.running_sandboxes import SandboxRecord, hold, log_of
    from moorage_sandbox.sandbox.up import up

    clock = SystemClock()
    record = SandboxRecord(
        name=life["name"],
        process=os.getpid(),
        kubeconfig=str(plan.kubeconfig.resolve()),
        started=rfc3339(clock.now_ns()),
        served=None if plan.served is None else tuple(sorted(plan.served)),
        autoscale=plan.autoscale,
        log=str(log_of(plan.kubeconfig).resolve()) if life["detach"] else "",
    )
    with hold(record) as held:
        plan = msgspec.structs.replace(plan, record_lock=held)
        if not life["merge_kubeconfig"]:
            run_loop(up(plan, parts, view, clock=clock))
            return
        from moorage_sandbox.sandbox.merged_context import context_name, put_in, take_out

        file, context = user_kubeconfig(), context_name(life["name"])
        plan = msgspec.structs.replace(
            plan, context=context, on_kubeconfig=lambda text: put_in(file, context, text)
        )
        try:
            run_loop(up(plan, parts, view, clock=clock))
        finally:
            take_out(file, context)
