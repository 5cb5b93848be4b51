"""The kinds around a pod template that runs forever: Deployment, ReplicaSet and so on.

Mirrors kubernetes v1.36 pkg/apis/apps/{v1/defaults.go,validation}, and pkg/apis/core for
ReplicationController and PodTemplate.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from moorage.api import resources
from moorage.api.codec import from_dict
from moorage.api.meta import LabelSelector
from moorage.api.names import dns_label_faults
from moorage.api.selectors import compile_label_selector
from moorage.kinds.built_in import resource_type
from moorage.kinds.cells import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    NONE,
    SELECTOR,
    column,
    count,
    format_labels,
    wide,
)
from moorage.kinds.fields import (
    Default,
    Rule,
    defaults,
    name_rule,
    one_of,
    rules,
    selectable,
    unchanging,
    within,
)
from moorage.kinds.kind import FieldError, Obj, forbidden, invalid, required
from moorage.kinds.pod.defaults import default_template
from moorage.kinds.pod.handlers import RESTART_POLICIES
from moorage.kinds.pod.spec import template
from moorage.kinds.pod.warnings import of_owner, of_template
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, attach, child, number, objects, text
from moorage.kinds.values.selectors import check_label_selector
from moorage.kinds.values.warnings import of_claim
from moorage.kinds.volumes.persistent_volumes import default_claim
from moorage.kinds.volumes.pod_volumes import check_shared_disks
from moorage.kinds.workloads.rollouts import (
    check_daemon_set_rollout,
    check_deadline,
    check_recreate,
    check_rolling_deployment,
    check_stateful_set_rollout,
)
from moorage.kinds.workloads.status_counts import status_counts

_STATEFUL_SET_OPEN = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_STATEFUL_SET_UPDATE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)


def selects(selector: Json, labels: Json) -> bool:
    """Whether a valid label selector selects these labels."""
    return compile_label_selector(from_dict(LabelSelector, selector)).matches(labels)


def matches_template(spec: Json, selector: Json) -> list[FieldError]:
    """Check a workload's selector, and that it selects the labels of the template."""
    faults = check_label_selector(selector, "spec.selector")
    labels = child(spec, "template", "metadata", "labels")
    return faults or ([] if selects(selector, labels) else [_mismatch(labels)])


def _mismatch(labels: Json) -> FieldError:
    detail = "`selector` does not match template `labels`"
    return invalid("spec.template.metadata.labels", labels, detail)


def _selected(kind: str) -> Rule:
    """Return the rule of a selector, which is required and not empty; upstream's name of a kind."""

    def check(spec: Any, where: str) -> list[FieldError]:
        selector = spec.get("selector")
        if selector is None:
            return [required(f"{where}.selector")]
        if selector.get("matchLabels") or selector.get("matchExpressions"):
            return matches_template(spec, selector)
        detail = f"empty selector is invalid for {kind}"
        return [invalid(f"{where}.selector", selector, detail)]

    return check


_COUNTS = "replicas minReadySeconds progressDeadlineSeconds"
_history = ("revisionHistoryLimit", within(0))  # a stateful set may have a negative limit


# As upstream, whose deployments check their template as a replica set does.
_pods_of_sets: Final = template("Always", kind="ReplicaSet")
_pods_of_stateful_sets: Final = template("Always", kind="StatefulSet")
_pods_of_daemon_sets: Final = template("Always", kind="DaemonSet")
_pods_of_controllers: Final = template("Always", kind="ReplicationController")


def _workload(
    kind: str,
    *more: Rule | tuple[str, Rule],
    pods: Rule | tuple[str, Rule] = ("template", _pods_of_sets),
) -> Rule:
    """Return the rule of the spec of a workload: counts, selector, its pods, and more."""
    return rules(("spec", rules((_COUNTS, within(0)), _selected(kind), pods, *more)))


def _default_spec_template(obj: Json) -> None:
    default_template(obj["spec"])


def _rolling(strategy: str, values: Json) -> Default:
    """Return the defaults of a rolling update; ``strategy`` is the field with the strategy."""
    fill_values = defaults(unset=values)

    def fill_in(obj: Json) -> None:
        found = obj["spec"][strategy]
        if found["type"] == "RollingUpdate":
            fill_values(attach(found, "rollingUpdate"))

    return fill_in


_service_name = name_rule(dns_label_faults)


def _new_stateful_set(obj: Obj, old: Obj | None) -> list[FieldError]:
    """Refuse a service name that no pod could have as its subdomain.

    It cannot change, so a set that was stored with such a name may still be changed otherwise.
    """
    if old is not None:
        return []
    return _service_name(child(obj, "spec").get("serviceName"), "spec.serviceName")


def _stateful_set_change(new: Obj, old: Obj) -> list[FieldError]:
    after, before = (
        {key: value for key, value in child(obj, "spec").items() if key not in _STATEFUL_SET_OPEN}
        for obj in (new, old)
    )
    return [] if after == before else [forbidden("spec", _STATEFUL_SET_UPDATE)]


def _either(first: str, second: str) -> Rule:
    """Return the rule of a text that is one of two, in the words of a stateful set."""

    def check(value: Any, where: str) -> list[FieldError]:
        if value in (first, second):
            return []
        if not value:
            return [required(where)]
        return [invalid(where, value, f"must be '{first}' or '{second}'")]

    return check


def _stateful_set_strategy(strategy: Any, where: str) -> list[FieldError]:
    kind = text(strategy or {}, "type")
    if not kind:
        return [required(where)]
    if kind in ("RollingUpdate", "OnDelete"):
        return []
    return [invalid(where, strategy, "must be 'RollingUpdate' or 'OnDelete'")]


def _with_claims(spec: Json, where: str) -> list[FieldError]:
    """Check the template of a stateful set, whose pods get a volume for each claim template."""
    claims = [text(each, "metadata", "name") for each in objects(spec, "volumeClaimTemplates")]
    template = child(spec, "template")
    own = [
        each for each in objects(template, "spec", "volumes") if text(each, "name") not in claims
    ]
    given = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    if given:
        template = {**template, "spec": {**child(template, "spec"), "volumes": [*own, *given]}}
    return _pods_of_stateful_sets(template, f"{where}.template")


def _default_claims(obj: Json) -> None:
    for claim in objects(obj, "spec", "volumeClaimTemplates"):
        default_claim(claim)


def _default_from_template(obj: Json) -> None:
    """Take a replication controller's selector and labels from its template."""
    spec = attach(obj, "spec")
    labels = child(spec, "template", "metadata", "labels")
    if labels and not spec.get("selector"):
        spec["selector"] = dict(labels)
    if labels and not child(obj, "metadata").get("labels"):
        attach(obj, "metadata")["labels"] = dict(labels)
    if spec.get("template") is not None:
        default_template(spec)


def _controlled(spec: Json, where: str) -> list[FieldError]:
    """Check a replication controller's selector, a plain map, and its template."""
    selector = child(spec, "selector")
    errors = [] if selector else [required(f"{where}.selector")]
    if spec.get("template") is None:
        return [*errors, required(f"{where}.template")]
    labels = child(spec, "template", "metadata", "labels")
    if any(labels.get(key) != value for key, value in selector.items()):
        errors.append(_mismatch(labels))
    return errors + _pods_of_controllers(spec["template"], f"{where}.template")


def _revision(new: Obj, old: Obj | None) -> list[FieldError]:
    if faults := within(0)(new.get("revision"), "revision"):
        return faults
    if new.get("data") is None:
        return [required("data", "data is mandatory")]
    return unchanging("data")(new, old) if old is not None else []


def _template_containers(obj: Obj, key: str) -> str:
    return ",".join(text(each, key) for each in objects(obj, "template", "spec", "containers"))


def _template_labels(obj: Obj) -> str:
    return format_labels(child(obj, "template", "metadata", "labels"))


def _selector_map(obj: Obj) -> str:
    return format_labels(child(obj, "spec", "selector"))


def _ready(obj: Obj) -> str:
    return f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas')}"


def _node_selector(obj: Obj) -> str:
    return format_labels(child(obj, "spec", "template", "spec", "nodeSelector"))


def _owner(obj: Obj) -> str:
    for owner in objects(obj, "metadata", "ownerReferences"):
        if owner.get("controller"):
            group = text(owner, "apiVersion").rpartition("/")[0]
            kind = text(owner, "kind").lower()
            return f"{kind}.{group}/{owner['name']}" if group else f"{kind}/{owner['name']}"
    return NONE


_REPLICAS = (
    NAME,
    count("Desired", "spec.replicas", "Pods there should be"),
    count("Current", "status.replicas", "Pods there are"),
    count("Ready", "status.readyReplicas", "Pods that are ready"),
    AGE,
    CONTAINERS,
    IMAGES,
)
_READY = column("Ready", _ready, "Pods that are ready, of those there should be")
_SELECTOR_KEPT = unchanging("spec.selector")
_BY_REPLICAS = selectable(
    more={"status.replicas": lambda obj: str(number(obj, "status", "replicas"))}
)


def _warn(obj: Obj) -> list[str]:
    return of_template(child(obj, "spec", "template"), "spec.template.")


def _warn_of_stateful_set(obj: Obj) -> list[str]:
    warnings = _warn(obj)
    for index, claim in enumerate(objects(obj, "spec", "volumeClaimTemplates")):
        warnings += of_claim(child(claim, "spec"), f"spec.volumeClaimTemplates[{index}].spec")
    if number(obj, "spec", "revisionHistoryLimit") < 0:
        warnings.append(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; "
            "a value >= 0 is recommended"
        )
    return warnings


DEPLOYMENT = ServedKind(
    resource=resources.DEPLOYMENTS,
    acted_on_by="the deployment controller",
    # The labels of a deployment are kept as well (pkg/registry/apps/deployment/strategy.go).
    open_status=("annotations", "finalizers"),
    columns=(
        NAME,
        _READY,
        *(
            msgspec.structs.replace(count(name, path, description), type="string")
            for name, path, description in (
                ("Up-to-date", "status.updatedReplicas", "Pods made from the newest template"),
                ("Available", "status.availableReplicas", "Pods that have been ready long enough"),
            )
        ),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ),
    defaults=defaults(
        _rolling("strategy", {"maxUnavailable": "25%", "maxSurge": "25%"}),
        _default_spec_template,
        unset={
            "spec.replicas": 1,
            "spec.revisionHistoryLimit": 10,
            "spec.progressDeadlineSeconds": 600,
            "status": {},
        },
        empty={"spec.strategy.type": "RollingUpdate"},
    ),
    counts_generations=True,
    rules=_workload(
        "deployment",
        ("strategy.type", one_of("Recreate", "RollingUpdate")),
        ("strategy", check_recreate),
        ("strategy.rollingUpdate", check_rolling_deployment),
        _history,
        check_deadline,
        check_shared_disks,
    ),
    check_status=status_counts(
        "updatedReplicas readyReplicas availableReplicas", "unavailableReplicas"
    ),
    change=_SELECTOR_KEPT,
    warn=_warn,
    warn_of_new=of_owner,
)
REPLICA_SET = ServedKind(
    resource=resources.REPLICA_SETS,
    acted_on_by="the replica set controller",
    columns=(*_REPLICAS, SELECTOR),
    defaults=defaults(_default_spec_template, unset={"spec.replicas": 1, "status.replicas": 0}),
    fields=_BY_REPLICAS,
    counts_generations=True,
    rules=_workload("deployment", check_shared_disks),
    check_status=status_counts("fullyLabeledReplicas readyReplicas availableReplicas"),
    change=_SELECTOR_KEPT,
    warn=_warn,
    warn_of_new=of_owner,
)
STATEFUL_SET = ServedKind(
    resource=resources.STATEFUL_SETS,
    acted_on_by="the stateful set controller",
    columns=(NAME, _READY, AGE, CONTAINERS, IMAGES),
    defaults=defaults(
        _rolling("updateStrategy", {"partition": 0}),
        _default_claims,
        _default_spec_template,
        unset={
            "spec.replicas": 1,
            "spec.revisionHistoryLimit": 10,
            "spec.serviceName": "",
            "status.replicas": 0,
            "status.availableReplicas": 0,
        },
        empty={
            "spec.podManagementPolicy": "OrderedReady",
            "spec.updateStrategy.type": "RollingUpdate",
            "spec.persistentVolumeClaimRetentionPolicy.whenDeleted": "Retain",
            "spec.persistentVolumeClaimRetentionPolicy.whenScaled": "Retain",
            "spec.volumeClaimTemplates[].apiVersion": "v1",
            "spec.volumeClaimTemplates[].kind": "PersistentVolumeClaim",
        },
    ),
    name_rule=dns_label_faults,
    counts_generations=True,
    rules=_workload(
        "statefulset",
        ("podManagementPolicy", _either("OrderedReady", "Parallel")),
        ("updateStrategy", _stateful_set_strategy),
        ("updateStrategy", check_stateful_set_rollout),
        (
            "persistentVolumeClaimRetentionPolicy.whenDeleted "
            "persistentVolumeClaimRetentionPolicy.whenScaled",
            one_of("Delete", "Retain"),
        ),
        ("ordinals.start", within(0)),
        pods=_with_claims,
    ),
    check=_new_stateful_set,
    check_status=status_counts("readyReplicas currentReplicas updatedReplicas availableReplicas"),
    change=_stateful_set_change,
    warn=_warn_of_stateful_set,
)
DAEMON_SET = ServedKind(
    resource=resources.DAEMON_SETS,
    acted_on_by="the daemon set controller",
    columns=(
        NAME,
        count("Desired", "status.desiredNumberScheduled", "Nodes that should run the pod"),
        count("Current", "status.currentNumberScheduled", "Nodes that run it and should"),
        count("Ready", "status.numberReady", "Nodes whose pod is ready"),
        count("Up-to-date", "status.updatedNumberScheduled", "Nodes with the newest pod"),
        count("Available", "status.numberAvailable", "Nodes whose pod has been ready long enough"),
        column("Node Selector", _node_selector, "Labels of the nodes meant"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ),
    defaults=defaults(
        _rolling("updateStrategy", {"maxUnavailable": 1, "maxSurge": 0}),
        _default_spec_template,
        unset={
            "spec.revisionHistoryLimit": 10,
            "status.currentNumberScheduled": 0,
            "status.desiredNumberScheduled": 0,
            "status.numberMisscheduled": 0,
            "status.numberReady": 0,
        },
        empty={"spec.updateStrategy.type": "RollingUpdate"},
    ),
    counts_generations=True,
    rules=_workload(
        "daemonset",
        ("updateStrategy.type", one_of("OnDelete", "RollingUpdate")),
        ("updateStrategy", check_daemon_set_rollout),
        _history,
        check_shared_disks,
        pods=("template", _pods_of_daemon_sets),
    ),
    check_status=status_counts(
        others="currentNumberScheduled numberMisscheduled desiredNumberScheduled numberReady "
        "updatedNumberScheduled numberAvailable numberUnavailable"
    ),
    change=_SELECTOR_KEPT,
    warn=_warn,
)
CONTROLLER_REVISION = ServedKind(
    resource=resources.CONTROLLER_REVISIONS,
    acted_on_by="the stateful and daemon set controllers",
    columns=(
        NAME,
        column("Controller", _owner, "What has this revision"),
        count("Revision", "revision", "Number of the revision", type_="string"),
        AGE,
    ),
    check=_revision,
)
REPLICATION_CONTROLLER = ServedKind(
    resource=resources.REPLICATION_CONTROLLERS,
    acted_on_by="the replication controller",
    columns=(
        *_REPLICAS,
        wide("Selector", _selector_map, SELECTOR.description),
    ),
    defaults=defaults(_default_from_template, unset={"spec.replicas": 1, "status.replicas": 0}),
    fields=_BY_REPLICAS,
    counts_generations=True,
    rules=rules(("spec", rules((_COUNTS, within(0)), _controlled, check_shared_disks))),
    check_status=status_counts("fullyLabeledReplicas readyReplicas availableReplicas"),
    warn=_warn,
    warn_of_new=of_owner,
)
POD_TEMPLATE = ServedKind(
    resource=resource_type("v1", "podtemplates"),
    columns=(
        NAME,
        column("Containers", lambda obj: _template_containers(obj, "name"), CONTAINERS.description),
        column("Images", lambda obj: _template_containers(obj, "image"), IMAGES.description),
        column("Pod Labels", _template_labels, "Labels of the template"),
    ),
    defaults=default_template,
    counts_generations=True,
    rules=rules(("template", template(*RESTART_POLICIES))),
    warn=lambda obj: of_template(child(obj, "template"), "template."),
)
KINDS = (
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    DAEMON_SET,
    CONTROLLER_REVISION,
    REPLICATION_CONTROLLER,
    POD_TEMPLATE,
)
