"""The manager of job sets over kr8s: watches, a lease, and patches of the status."""

from __future__ import annotations

import sys
from typing import Any

import kr8s
from kr8s.objects import Job, new_class

from tests.foreign.managers import plan

Lease: Any = new_class(
    kind="Lease", version="coordination.k8s.io/v1", namespaced=True, asyncio=False
)
JobSet: Any = new_class(
    kind=plan.KIND, version=f"{plan.GROUP}/{plan.VERSION}", namespaced=True, asyncio=False
)


def main(namespace: str) -> None:
    api: Any = kr8s.api(namespace=namespace)
    Lease(plan.lease("kr8s"), api=api).create()
    plan.tell("leads")
    for change, job_set in api.watch(JobSet, namespace=namespace):
        if change == "ADDED":
            Job(plan.job_of(job_set.raw), api=api).create()
            break
    for _, each in api.watch(Job, namespace=namespace):
        found = each.raw
        if plan.is_complete(found):
            name = found["metadata"]["ownerReferences"][0]["name"]
            JobSet.get(name, namespace=namespace, api=api).patch(
                plan.status_of(found), subresource="status"
            )
            plan.tell("completed", name)
            return


if __name__ == "__main__":
    main(sys.argv[1])
