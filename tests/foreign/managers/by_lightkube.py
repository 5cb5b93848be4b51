"""The manager of job sets over lightkube: watches, a lease, and patches of the status."""

from __future__ import annotations

import sys
from typing import Any

from lightkube import Client, codecs
from lightkube.generic_resource import create_namespaced_resource
from lightkube.resources.batch_v1 import Job
from lightkube.types import PatchType

from tests.foreign.managers import plan

JobSet = create_namespaced_resource(plan.GROUP, plan.VERSION, plan.KIND, plan.PLURAL)


def main(namespace: str) -> None:
    client: Any = Client(namespace=namespace)
    client.create(codecs.from_dict(plan.lease("lightkube")))
    plan.tell("leads")
    job: Any = None
    for change, job_set in client.watch(JobSet, namespace=namespace):
        if change == "ADDED":
            job = plan.job_of(job_set.to_dict())
            break
    client.create(codecs.from_dict(job))
    for _, each in client.watch(Job, namespace=namespace):
        found = each.to_dict()
        if plan.is_complete(found):
            name = found["metadata"]["ownerReferences"][0]["name"]
            patch = plan.status_of(found)
            client.patch(JobSet.Status, name, patch, patch_type=PatchType.MERGE)
            plan.tell("completed", name)
            return


if __name__ == "__main__":
    main(sys.argv[1])
