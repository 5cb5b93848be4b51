"""What the documentation of lightkube begins with, as one program; it prints what it sees."""

from __future__ import annotations

import json
import sys
from typing import Any

from lightkube import ApiError, Client, codecs
from lightkube.generic_resource import create_namespaced_resource, load_in_cluster_generic_resources
from lightkube.models.autoscaling_v1 import ScaleSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Node, Pod
from lightkube.types import PatchType

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "nginx:1"}]}
"""


def show(*values: Any) -> None:
    sys.stdout.write(json.dumps(values) + "\n")


def config_maps(client: Client) -> None:
    made = client.create(
        ConfigMap(metadata=ObjectMeta(name="my-config"), data={"key1": "value1", "key2": "value2"})
    )
    assert made.data is not None
    made.data["key1"] = "new value"
    show("replaced", client.replace(made).data)
    show("patched", client.patch(ConfigMap, "my-config", {"data": {"key3": "value3"}}).data)
    without = client.patch(
        ConfigMap, "my-config", {"data": {"key3": None}}, patch_type=PatchType.MERGE
    )
    show("without", without.data)
    client.delete(ConfigMap, "my-config")
    try:
        client.get(ConfigMap, "my-config")
    except ApiError as error:
        show("gone", error.status.code, error.status.reason)


def applying(client: Client) -> None:
    config = ConfigMap(
        apiVersion="v1",
        kind="ConfigMap",
        metadata=ObjectMeta(name="applied"),
        data={"key1": "value1", "key2": "value2"},
    )
    show("applied", client.apply(config).data)
    assert config.data is not None
    del config.data["key1"]
    config.data["key3"] = "value3"
    show("applied", client.apply(config).data)


def deployments(client: Client) -> None:
    for obj in codecs.load_all_yaml(WEB):
        client.create(obj)
    scale = Deployment.Scale(metadata=ObjectMeta(name="web"), spec=ScaleSpec(replicas=2))
    client.replace(scale, "web")
    client.wait(Deployment, "web", for_conditions=["Available"])
    for _kind, deployment in client.watch(Deployment):
        if deployment.status is not None and deployment.status.readyReplicas == 2:
            show("ready", deployment.status.readyReplicas)
            break
    show("pods", len(list(client.list(Pod, labels={"app": ("web", "site")}, chunk_size=1))))


def generic(client: Client) -> None:
    # Kinds nobody has generated: found by the definitions in the cluster, and by their names.
    load_in_cluster_generic_resources(client)
    quota = create_namespaced_resource(
        "scheduling.x-k8s.io", "v1alpha1", "ElasticQuota", "elasticquotas"
    )
    made = client.create(quota(metadata=ObjectMeta(name="team"), spec={"max": {"cpu": "4"}}))
    show("generic", made.kind, made.spec["max"])


if __name__ == "__main__":
    with Client(field_manager="my-manager", namespace=sys.argv[1]) as connected:
        show("nodes", *(node.metadata.name for node in connected.list(Node) if node.metadata))
        config_maps(connected)
        applying(connected)
        deployments(connected)
        generic(connected)
