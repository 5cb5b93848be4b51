"""The pods of a workload that run, as an API server tells of them; about 3 KB each."""

from __future__ import annotations

from typing import Final

from moorage_lab.bench.workload import NAMESPACE, JsonObject

_CONDITIONS: Final = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
)
_TOKEN: Final = "kube-api-access-%(token)s"


def running_pod(workload: int) -> JsonObject:
    """Return a pod of a workload, with ``%(own)s`` in the places of a pod's own texts.

    The own texts are name, uid, version, time, node, host, address and the end of a volume's name.
    """
    app, hash_ = f"app-{workload}", f"{workload:010x}"
    team = f"team-{workload % 50}"
    image = f"registry.example.com/{team}/{app}:v{workload % 7}.2.1"
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"{app}-{hash_}",
        "uid": f"{workload:08x}-1111-4000-8000-000000000000",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "metadata": {
            "name": "%(name)s",
            "generateName": f"{app}-{hash_}-",
            "namespace": NAMESPACE,
            "uid": "%(uid)s",
            "resourceVersion": "%(version)s",
            "creationTimestamp": "%(time)s",
            "labels": {"app": app, "pod-template-hash": hash_, "team": team},
            "annotations": {"network.example.com/address": "%(address)s/32"},
            "ownerReferences": [owner],
        },
        "spec": _spec(app, image),
        "status": _status(image, f"{workload:064x}"),
    }


def _spec(app: str, image: str) -> JsonObject:
    lost = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    projected = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]
    return {
        "containers": [_container(app, image)],
        "volumes": [{"name": _TOKEN, "projected": {"sources": projected, "defaultMode": 420}}],
        "nodeName": "%(node)s",
        "schedulerName": "default-scheduler",
        "serviceAccountName": app,
        "serviceAccount": app,
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {"runAsNonRoot": True, "fsGroup": 2000},
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "tolerations": [
            {"key": "node.kubernetes.io/not-ready", **lost},
            {"key": "node.kubernetes.io/unreachable", **lost},
        ],
    }


def _container(app: str, image: str) -> JsonObject:
    requests = {"cpu": "10m", "memory": "64Mi"}
    token = {
        "name": _TOKEN,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    }
    return {
        "name": "main",
        "image": image,
        "args": ["serve", f"--app={app}", "--listen=:8080"],
        "env": [
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "APP", "value": app},
        ],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "resources": {"requests": requests, "limits": {"memory": "128Mi"}},
        "volumeMounts": [{**token, "readOnly": True}],
        "livenessProbe": {"httpGet": {"path": "/livez", "port": "http"}, "periodSeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 5},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def _status(image: str, image_digest: str) -> JsonObject:
    container = {
        "name": "main",
        "image": image,
        "imageID": f"registry.example.com/app@sha256:{image_digest}",
        "containerID": "containerd://%(uid)s",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": "%(time)s"}},
        "lastState": {},
    }
    return {
        "phase": "Running",
        "qosClass": "Burstable",
        "hostIP": "%(host)s",
        "hostIPs": [{"ip": "%(host)s"}],
        "podIP": "%(address)s",
        "podIPs": [{"ip": "%(address)s"}],
        "startTime": "%(time)s",
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": "%(time)s",
            }
            for kind in _CONDITIONS
        ],
        "containerStatuses": [container],
    }
