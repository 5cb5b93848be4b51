"""The FlowSchemas and priority levels of a new cluster, with kube-apiserver's names and values.

Place in the flow: `bootstrap` creates them. `flow_schemas` reads what is stored. Controllers and
schedulers of Kubernetes read them at start, and log an error for each that is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from moorage.kinds.kind import Obj
from moorage.kinds.tree import Json
from moorage_sandbox.apiserver.wire.requests import AUTHENTICATED

_API_VERSION: Final = "flowcontrol.apiserver.k8s.io/v1"
# The server keeps the specs of these objects current while they say so.
_MANAGED: Final = {"apf.kubernetes.io/autoupdate-spec": "true"}
_EVERYBODY: Final = ("group:system:unauthenticated", f"group:{AUTHENTICATED}")
_ANY_ACCOUNT: Final = "account:*"
_CONTROLLER_MANAGER: Final = "user:system:kube-controller-manager"
_SCHEDULER: Final = "user:system:kube-scheduler"


class _Level(NamedTuple):
    """A limited priority level: its shares, the percentage it lends, and its queues."""

    shares: int
    lendable: int
    queues: int = 0
    hand: int = 0

    def spec(self) -> Json:
        response: Json = {"type": "Reject"}
        if self.queues:
            queuing = {"queues": self.queues, "handSize": self.hand, "queueLengthLimit": 50}
            response = {"type": "Queue", "queuing": queuing}
        limited: Json = {"nominalConcurrencyShares": self.shares, "lendablePercent": self.lendable}
        return {"type": "Limited", "limited": {**limited, "limitResponse": response}}


class _Schema(NamedTuple):
    """A FlowSchema: its level and precedence, who calls, and about what."""

    level: str
    precedence: int
    distinguisher: str
    subjects: tuple[str, ...]
    rules: Json

    def spec(self) -> Json:
        spec: Json = {
            "priorityLevelConfiguration": {"name": self.level},
            "matchingPrecedence": self.precedence,
        }
        if self.distinguisher:
            spec["distinguisherMethod"] = {"type": self.distinguisher}
        subjects = [_subject(each) for each in self.subjects]
        return {**spec, "rules": [{"subjects": subjects, **self.rules}]}


def _subject(text: str) -> Json:
    kind, _, name = text.partition(":")
    if kind == "account":
        account = {"namespace": "kube-system", "name": name}
        return {"kind": "ServiceAccount", "serviceAccount": account}
    return {"kind": kind.capitalize(), kind: {"name": name}}


def _calls(verbs: str, group: str, resources: str, *, cluster: bool = False) -> Json:
    rule: Json = {
        "verbs": verbs.split(),
        "apiGroups": [group],
        "resources": resources.split(),
        "namespaces": ["*"],
    }
    return {**rule, "clusterScope": True} if cluster else rule


_EVERY_PATH: Final[Json] = {"verbs": ["*"], "nonResourceURLs": ["*"]}
_ALL: Final[Json] = {
    "resourceRules": [_calls("*", "*", "*", cluster=True)],
    "nonResourceRules": [_EVERY_PATH],
}
_LEASES: Final[Json] = {
    "resourceRules": [_calls("get create update", "coordination.k8s.io", "leases")]
}
_LEVELS: Final = {
    "catch-all": _Level(5, 0),
    "global-default": _Level(20, 50, 128, 6),
    "leader-election": _Level(10, 0, 16, 4),
    "node-high": _Level(40, 25, 64, 6),
    "system": _Level(30, 33, 64, 6),
    "workload-high": _Level(40, 50, 128, 6),
    "workload-low": _Level(100, 90, 128, 6),
}
_SCHEMAS: Final = {
    "exempt": _Schema("exempt", 1, "", ("group:system:masters",), _ALL),
    "probes": _Schema(
        "exempt",
        2,
        "",
        _EVERYBODY,
        {
            "nonResourceRules": [
                {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}
            ]
        },
    ),
    "system-leader-election": _Schema(
        "leader-election", 100, "ByUser", (_CONTROLLER_MANAGER, _SCHEDULER, _ANY_ACCOUNT), _LEASES
    ),
    "endpoint-controller": _Schema(
        "workload-high",
        150,
        "ByUser",
        (
            _CONTROLLER_MANAGER,
            "account:endpoint-controller",
            "account:endpointslicemirroring-controller",
        ),
        {"resourceRules": [_calls("get create update", "", "endpoints")]},
    ),
    "workload-leader-election": _Schema("leader-election", 200, "ByUser", (_ANY_ACCOUNT,), _LEASES),
    "system-node-high": _Schema(
        "node-high",
        400,
        "ByUser",
        ("group:system:nodes",),
        {
            "resourceRules": [
                _calls("*", "", "nodes nodes/status", cluster=True),
                _calls("*", "coordination.k8s.io", "leases"),
            ]
        },
    ),
    "system-nodes": _Schema("system", 500, "ByUser", ("group:system:nodes",), _ALL),
    "kube-controller-manager": _Schema(
        "workload-high", 800, "ByNamespace", (_CONTROLLER_MANAGER,), _ALL
    ),
    "kube-scheduler": _Schema("workload-high", 800, "ByNamespace", (_SCHEDULER,), _ALL),
    "kube-system-service-accounts": _Schema(
        "workload-high", 900, "ByNamespace", (_ANY_ACCOUNT,), _ALL
    ),
    "service-accounts": _Schema(
        "workload-low", 9000, "ByUser", ("group:system:serviceaccounts",), _ALL
    ),
    "global-default": _Schema("global-default", 9900, "ByUser", _EVERYBODY, _ALL),
    "catch-all": _Schema("catch-all", 10_000, "ByUser", _EVERYBODY, _ALL),
}
DEFAULT_SCHEMAS: Final = len(_SCHEMAS)
"""The number of schemas of a new cluster."""


def default_flows() -> Iterator[Obj]:
    """Yield the priority levels and FlowSchemas of a new cluster, the levels first.

    Notes
    -----
    Names and values: kubernetes v1.36 apiserver pkg/apis/flowcontrol/bootstrap/default.go.
    """
    exempt: Json = {"nominalConcurrencyShares": 0, "lendablePercent": 0}
    yield _object("PriorityLevelConfiguration", "exempt", {"type": "Exempt", "exempt": exempt})
    for name, level in _LEVELS.items():
        yield _object("PriorityLevelConfiguration", name, level.spec())
    for name, schema in _SCHEMAS.items():
        yield _object("FlowSchema", name, schema.spec())


def _object(kind: str, name: str, spec: Json) -> Obj:
    metadata = {"name": name, "annotations": dict(_MANAGED)}
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
