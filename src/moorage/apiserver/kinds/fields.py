"""The fields of each kind that field selectors support.

Place in the flow: lists and watches with a ``fieldSelector``. Mirrors the ``ToSelectableFields``
functions of kubernetes v1.36 pkg/registry.
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.apiserver.kinds.tree import Json, child, number, objects, text


def name_fields(obj: Json) -> dict[str, str]:
    """Name and namespace, which are selectable for every kind."""
    return {
        "metadata.name": text(obj, "metadata", "name"),
        "metadata.namespace": text(obj, "metadata", "namespace"),
    }


def pod_fields(obj: Json) -> dict[str, str]:
    """Return the selectable fields of pods."""
    spec, status = child(obj, "spec"), child(obj, "status")
    addresses = objects(status, "podIPs")
    return name_fields(obj) | {
        "spec.nodeName": text(spec, "nodeName"),
        "spec.restartPolicy": text(spec, "restartPolicy"),
        "spec.schedulerName": text(spec, "schedulerName"),
        "spec.serviceAccountName": text(spec, "serviceAccountName"),
        "spec.hostNetwork": _boolean(spec.get("hostNetwork")),
        "status.phase": text(status, "phase"),
        "status.podIP": text(addresses[0], "ip") if addresses else text(status, "podIP"),
        "status.nominatedNodeName": text(status, "nominatedNodeName"),
    }


def node_fields(obj: Json) -> dict[str, str]:
    """Return the selectable fields of nodes."""
    unschedulable = _boolean(child(obj, "spec").get("unschedulable"))
    return name_fields(obj) | {"spec.unschedulable": unschedulable}


def namespace_fields(obj: Json) -> dict[str, str]:
    """Return the selectable fields of namespaces."""
    return name_fields(obj) | {"status.phase": text(obj, "status", "phase")}


def service_fields(obj: Json) -> dict[str, str]:
    """Return the selectable fields of services."""
    spec = child(obj, "spec")
    return name_fields(obj) | {
        "spec.clusterIP": text(spec, "clusterIP"),
        "spec.type": text(spec, "type"),
    }


def secret_fields(obj: Json) -> dict[str, str]:
    """Return the selectable fields of secrets."""
    return name_fields(obj) | {"type": text(obj, "type")}


def replica_fields(obj: Json) -> dict[str, str]:
    """Return the selectable fields of replica sets and replication controllers."""
    return name_fields(obj) | {"status.replicas": str(number(obj, "status", "replicas"))}


def job_fields(obj: Json) -> dict[str, str]:
    """Return the selectable fields of jobs."""
    return name_fields(obj) | {"status.successful": str(number(obj, "status", "succeeded"))}


_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def event_fields(prefix: str) -> Callable[[Json], dict[str, str]]:
    """Return the selectable fields of Events, with the object under its name in one API version.

    Parameters
    ----------
    prefix
        ``involvedObject`` (core/v1) or ``regarding`` (events.k8s.io/v1).
    """

    def fields(obj: Json) -> dict[str, str]:
        about = child(obj, "involvedObject") or child(obj, "regarding")
        component = text(obj, "source", "component") or text(obj, "deprecatedSource", "component")
        reporter = text(obj, "reportingComponent") or text(obj, "reportingController")
        return (
            name_fields(obj)
            | {f"{prefix}.{key}": text(about, key) for key in _REFERENCE}
            | {
                "reason": text(obj, "reason"),
                "reportingComponent": reporter,
                "source": component or reporter,
                "type": text(obj, "type"),
            }
        )

    return fields


def _boolean(value: object) -> str:
    return "true" if value is True else "false"
