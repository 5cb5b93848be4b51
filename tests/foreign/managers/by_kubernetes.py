"""The manager of job sets over the official client: watches, a lease, and patches of the status."""

from __future__ import annotations

import sys
from typing import Any

import kubernetes

from tests.foreign.managers import plan

# Untyped, as its users see it.
kube: Any = kubernetes


def main(namespace: str) -> None:
    api = kube.config.new_client_from_config()
    custom, batch = kube.client.CustomObjectsApi(api), kube.client.BatchV1Api(api)
    place = (plan.GROUP, plan.VERSION, namespace, plan.PLURAL)
    leases = kube.client.CoordinationV1Api(api)
    leases.create_namespaced_lease(plan.LEASE_NAMESPACE, plan.lease("kubernetes"))
    plan.tell("leads")
    for event in kube.watch.Watch().stream(custom.list_namespaced_custom_object, *place):
        if event["type"] == "ADDED":
            batch.create_namespaced_job(namespace, plan.job_of(event["object"]))
            break
    for event in kube.watch.Watch().stream(batch.list_namespaced_job, namespace):
        found = event["raw_object"]
        if plan.is_complete(found):
            name = found["metadata"]["ownerReferences"][0]["name"]
            custom.patch_namespaced_custom_object_status(*place, name, plan.status_of(found))
            plan.tell("completed", name)
            return


if __name__ == "__main__":
    main(sys.argv[1])
