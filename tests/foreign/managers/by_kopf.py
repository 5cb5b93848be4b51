"""The manager of job sets as an operator of kopf, which calls the API with lightkube."""

from __future__ import annotations

from typing import Any

import kopf
from lightkube import Client, codecs

from tests.foreign.managers import plan

client: Any = Client()


@kopf.on.startup()
def take_lease(**_: Any) -> None:
    client.create(codecs.from_dict(plan.lease("kopf")))
    plan.tell("leads")


@kopf.on.create(plan.GROUP, plan.VERSION, plan.PLURAL)
def make_job(body: kopf.Body, **_: Any) -> None:
    client.create(codecs.from_dict(plan.job_of(dict(body))))


@kopf.on.event("batch", "v1", "jobs")
def follow(body: kopf.Body, patch: kopf.Patch, **_: Any) -> None:
    found = dict(body)
    owners = found["metadata"].get("ownerReferences") or [{}]
    if owners[0].get("kind") != plan.KIND or not plan.is_complete(found):
        return
    from lightkube.generic_resource import create_namespaced_resource
    from lightkube.types import PatchType

    job_set = create_namespaced_resource(plan.GROUP, plan.VERSION, plan.KIND, plan.PLURAL)
    name, namespace = owners[0]["name"], found["metadata"]["namespace"]
    status = plan.status_of(found)
    client.patch(job_set.Status, name, status, namespace=namespace, patch_type=PatchType.MERGE)
    plan.tell("completed", name)
