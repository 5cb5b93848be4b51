"""The kind Pod."""

from __future__ import annotations

from moorage.api import resources
from moorage.kinds.fields import selectable
from moorage.kinds.kind import Obj
from moorage.kinds.pod.admission import admit_pod, admit_pod_change, prepare_pod
from moorage.kinds.pod.changes import PARTS, check_pod_change
from moorage.kinds.pod.columns import COLUMNS, pod_cells
from moorage.kinds.pod.defaults import default_pod, default_pod_status
from moorage.kinds.pod.spec import check_new_pod
from moorage.kinds.pod.status import check_pod_status, keep_quality
from moorage.kinds.pod.warnings import of_pod
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import child, objects, text


def _address(obj: Obj) -> str:
    addresses = objects(obj, "status", "podIPs")
    return text(addresses[0], "ip") if addresses else text(obj, "status", "podIP")


def _on_host(obj: Obj) -> str:
    return "true" if child(obj, "spec").get("hostNetwork") is True else "false"


POD = ServedKind(
    resource=resources.PODS,
    shown_when_deleted=True,
    acted_on_by="the scheduler, node agents, controllers",
    columns=COLUMNS,
    cells=pod_cells,
    defaults=default_pod,
    status_defaults=default_pod_status,
    admit_new=admit_pod,
    admit_change=admit_pod_change,
    on_create=prepare_pod,
    # prepare_pod writes the whole status itself.
    keeps_status=True,
    settle=keep_quality,
    warn_of_new=of_pod,
    fields=selectable(
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.nominatedNodeName",
        more={"spec.hostNetwork": _on_host, "status.podIP": _address},
    ),
    counts_generations=True,
    parts=PARTS,
    more_subresources=frozenset({"attach", "binding", "eviction", "exec", "log", "portforward"}),
    check=check_new_pod,
    change=check_pod_change,
    check_status=check_pod_status,
)
"""The kind Pod."""
KINDS = (POD,)
