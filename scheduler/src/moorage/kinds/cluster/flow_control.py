"""FlowSchemas and priority levels: defaults, and whether a schema's level exists.

`moorage_sandbox.apiserver.wire.flow_schemas` classifies calls by them. Mirrors kubernetes v1.36
pkg/apis/flowcontrol/v1/defaults.go and apiserver pkg/util/flowcontrol/apf_controller.go.
"""

from __future__ import annotations

from moorage.api.resources import ResourceType
from moorage.base.clock import rfc3339
from moorage.kinds.built_in import resource_type
from moorage.kinds.cells import AGE, NAME, NONE, column
from moorage.kinds.fields import defaults, needed, one_of, rules, value_at, within
from moorage.kinds.kind import Column, Context, Obj
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import attach, condition, put_condition, text

_API_VERSION = "flowcontrol.apiserver.k8s.io/v1"
_QUEUES = "limitResponse.queuing"
_QUEUING = "spec?.limited?.limitResponse?.queuing?"


def _tell_level(schema: Obj, old: Obj, ctx: Context) -> None:
    """Write the condition that says whether the priority level of a schema exists, in place."""
    name = text(schema, "spec", "priorityLevelConfiguration", "name")
    exists = ctx.lookup("prioritylevelconfigurations", None, name) is not None
    existence = "it exists" if exists else "there is no such object"
    put_condition(
        attach(schema, "status"),
        {
            "type": "Dangling",
            "status": "False" if exists else "True",
            "reason": "Found" if exists else "NotFound",
            "message": "This FlowSchema references the PriorityLevelConfiguration object named "
            f'"{name}" and {existence}',
        },
        rfc3339(ctx.clock.now_ns()),
    )


def _tell_level_of_new(schema: Obj, ctx: Context, resource: ResourceType) -> None:
    _tell_level(schema, {}, ctx)


def _lacks_level(schema: Obj) -> str:
    found = condition(schema, "Dangling")
    return "?" if found is None else text(found, "status")


def _limit(name: str, field: str, description: str) -> Column:
    path = ("spec", "limited", *field.split("."))

    def limit(level: Obj) -> str:
        value = value_at(level, path)
        return NONE if value is None else str(value)

    return column(name, limit, description)


KINDS = (
    ServedKind(
        resource=resource_type(_API_VERSION, "flowschemas"),
        acted_on_by="the headers of answers",
        columns=(
            NAME,
            column("PriorityLevel", "spec.priorityLevelConfiguration.name", "Level of its calls"),
            column("MatchingPrecedence", "spec.matchingPrecedence", "Lowest first"),
            column(
                "DistinguisherMethod",
                "spec.distinguisherMethod.type",
                "How its calls are told apart",
                empty=NONE,
            ),
            AGE,
            column("MissingPL", _lacks_level, "Whether its level does not exist"),
        ),
        defaults=defaults(unset={"spec?.matchingPrecedence": 1000}),
        on_create=_tell_level_of_new,
        settle=_tell_level,
        counts_generations=True,
        open_status=(),
        rules=rules(
            ("spec.priorityLevelConfiguration.name", needed()),
            ("spec.matchingPrecedence", within(1, 10_000)),
        ),
    ),
    ServedKind(
        resource=resource_type(_API_VERSION, "prioritylevelconfigurations"),
        acted_on_by="the headers of answers",
        columns=(
            NAME,
            column("Type", "spec.type", "Whether calls are limited"),
            _limit("NominalConcurrencyShares", "nominalConcurrencyShares", "Share of all calls"),
            _limit("Queues", f"{_QUEUES}.queues", "Number of queues"),
            _limit("HandSize", f"{_QUEUES}.handSize", "Queues that a flow may use"),
            _limit("QueueLengthLimit", f"{_QUEUES}.queueLengthLimit", "Most calls of a queue"),
            AGE,
        ),
        defaults=defaults(
            unset={
                "spec?.exempt?.nominalConcurrencyShares": 0,
                "spec?.exempt?.lendablePercent": 0,
                "spec?.limited?.nominalConcurrencyShares": 30,
                "spec?.limited?.lendablePercent": 0,
                f"{_QUEUING}.queues": 64,
                f"{_QUEUING}.handSize": 8,
                f"{_QUEUING}.queueLengthLimit": 50,
            }
        ),
        counts_generations=True,
        open_status=(),
        rules=rules(("spec.type", one_of("Exempt", "Limited", empty="required"))),
    ),
)
