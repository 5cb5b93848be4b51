"""The chart of job sets in the size of those of Kueue, JobSet and LeaderWorkerSet.

Their definitions hold the template of a pod several times, with a text for each field, and are
some hundreds of kilobytes long. The charts also bring a deployment, an empty Secret for a
certificate, an aggregated role, and a FlowSchema with its priority level.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import yaml

Schema = dict[str, Any]

_TEXT = (
    "What this field is for, in as many words as the definitions of operators have for a field. "
)
_NUMBER_OR_TEXT: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_KNOWN: dict[str, Schema] = {
    "IntOrString": _NUMBER_OR_TEXT,
    "Quantity": _NUMBER_OR_TEXT,
    "Time": {"type": "string", "format": "date-time"},
    "ObjectMeta": {"type": "object", "properties": {"labels": _TEXTS, "annotations": _TEXTS}},
}
_KEPT = ("format", "required", "x-kubernetes-list-type", "x-kubernetes-map-type")
_KEYS = "x-kubernetes-list-map-keys"

_MORE = """
apiVersion: v1
kind: Secret
metadata: {name: sets-webhook-server-cert, namespace: sets-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: sets-controller-manager, namespace: sets-system}
spec:
  selector: {matchLabels: {control-plane: controller-manager}}
  template:
    metadata: {labels: {control-plane: controller-manager}}
    spec:
      serviceAccountName: sets-controller-manager
      containers:
      - name: manager
        image: registry.example.com/sets:v1
        ports: [{containerPort: 9443, name: webhook-server, protocol: TCP}]
        volumeMounts: [{mountPath: /certs, name: cert, readOnly: true}]
      volumes: [{name: cert, secret: {defaultMode: 420, secretName: sets-webhook-server-cert}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: sets-batch-admin}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {sets.example.com/batch-admin: "true"}}]}
rules: []
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: sets-visibility}
spec: {type: Limited, limited: {nominalConcurrencyShares: 5, limitResponse: {type: Reject}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: sets-visibility}
spec:
  matchingPrecedence: 9000
  priorityLevelConfiguration: {name: sets-visibility}
  rules:
  - resourceRules:
    - {apiGroups: [sets.example.com], namespaces: ["*"], resources: ["*"], verbs: ["*"]}
    subjects: [{kind: Group, group: {name: "system:authenticated"}}]
"""


def structural(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """Return a schema of OpenAPI version 2 as definitions of custom resources have it."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        known = _KNOWN.get(name.rpartition(".")[2])
        return known or structural(definitions[name], definitions)
    found = {"type": schema.get("type", "object")}
    found |= {key: schema[key] for key in _KEPT if key in schema}
    for key in ("items", "additionalProperties"):
        if key in schema:
            found[key] = structural(schema[key], definitions)
    if "properties" in schema:
        found["properties"] = {
            name: {"description": _TEXT} | structural(each, definitions)
            for name, each in schema["properties"].items()
        }
    if keys := schema.get(_KEYS):
        # The keys of a list have to be there: by the schema, or by a default.
        found[_KEYS] = keys
        if "protocol" in keys:
            found["items"]["properties"]["protocol"]["default"] = "TCP"
        required = {*found["items"].get("required", ()), *keys} - {"protocol"}
        found["items"]["required"] = sorted(required)
    return found


def large_chart(chart: str, definitions: dict[str, Schema]) -> list[dict[str, Any]]:
    """Return the objects of the chart, with large definitions, and further objects.

    Parameters
    ----------
    chart
        The manifests of the chart.
    definitions
        Those of ``/openapi/v2``.
    """
    objects = [*yaml.safe_load_all(chart), *yaml.safe_load_all(_MORE)]
    name = "io.k8s.api.core.v1.PodTemplateSpec"
    template = structural({"$ref": f"#/definitions/{name}"}, definitions)
    (two,) = (each for each in objects if each["kind"] == "CustomResourceDefinition")
    for version in two["spec"]["versions"]:
        version["schema"] = copy.deepcopy(version["schema"])
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"] |= {"template": template, "leaderTemplate": template}
    # JobSet's definition has one version, and names a webhook that converts it nevertheless.
    one = json.loads(json.dumps(two).replace("jobset", "leaderset").replace("JobSet", "LeaderSet"))
    one["spec"]["versions"] = one["spec"]["versions"][-1:]
    at = objects.index(two)
    return [*objects[: at + 1], one, *objects[at + 1 :]]
