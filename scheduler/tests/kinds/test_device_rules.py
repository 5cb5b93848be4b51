"""Scope: the rules that kube-apiserver has for claims, their status, and device classes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from moorage.kinds.devices.served import ADMIN_ACCESS
from moorage.kinds.kind import Obj
from moorage.kinds.status import StatusError
from scheduler.tests.kinds.builders import World, create_errors, created, named, update_errors
from scheduler.tests.kinds.test_pod_validation import LABEL, QUALIFIED
from scheduler.tests.kinds.test_scheduling_rules import SUBDOMAIN

C_NAME = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of "
    "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for "
    "validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
NO_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)
REQUESTS = "spec.devices.requests"
R = f"{REQUESTS}[0].exactly"


def request(**exactly: Any) -> Obj:
    return {"name": "r", "exactly": {"deviceClassName": "gpu", **exactly}}


def claim(*requests: Obj, **devices: Any) -> Obj:
    return named(
        "resourceclaims", spec={"devices": {"requests": list(requests) or [request()], **devices}}
    )


def selecting(expression: str) -> Obj:
    return claim(request(selectors=[{"cel": {"expression": expression}}]))


def config(**fields: Any) -> Obj:
    opaque = {"driver": "d.com", "parameters": {}}
    return claim(config=[{"opaque": opaque | fields.pop("opaque", {}), **fields}])


CEL = f"{R}.selectors[0].cel.expression"
CLAIMS = [
    pytest.param(claim(), [], id="one device of a class"),
    pytest.param(claim(request(count=33)), [], id="more devices than can be allocated"),
    pytest.param(
        claim({"name": "R", "exactly": {"deviceClassName": "G"}}),
        [
            f'{REQUESTS}[0].name: Invalid value: "R": {LABEL}',
            f'{R}.deviceClassName: Invalid value: "G": {SUBDOMAIN}',
        ],
        id="names in capitals",
    ),
    pytest.param(
        claim(request(allocationMode="Some", count=-1)),
        [f'{R}.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"'],
        id="an unknown mode",
    ),
    pytest.param(
        claim(request(count=-1)),
        [f"{R}.count: Invalid value: -1: must be greater than zero"],
        id="less than no device",
    ),
    pytest.param(
        claim(request(tolerations=[{"operator": "Exists", "value": "x", "effect": "Some"}])),
        [
            f'{R}.tolerations[0].value: Invalid value: "x": must be empty for operator `Exists`',
            f'{R}.tolerations[0].effect: Unsupported value: "Some": supported values: '
            '"NoExecute", "NoSchedule", "None"',
        ],
        id="a toleration that contradicts itself",
    ),
    pytest.param(
        claim(request(), constraints=[{}]),
        [
            'spec.devices.constraints[0]: Required value: exactly one of "matchAttribute" or '
            '"distinctAttribute" is required, but multiple fields are set'
        ],
        id="a constraint on nothing",
    ),
    pytest.param(
        claim(request(), constraints=[{"matchAttribute": "numa", "requests": ["r", "r", "x/y/z"]}]),
        [
            f'spec.devices.constraints[0].requests[2]: Invalid value: "x/y/z": {NO_REQUEST}',
            'spec.devices.constraints[0].requests[1]: Duplicate value: "r"',
            'spec.devices.constraints[0].matchAttribute: Invalid value: "numa": a fully qualified '
            "name must be a domain and a name separated by a slash",
        ],
        id="a constraint on an attribute without a domain",
    ),
    pytest.param(
        claim(request(), constraints=[{"distinctAttribute": "A b/9"}]),
        [
            f'spec.devices.constraints[0].distinctAttribute: Invalid value: "A b": {SUBDOMAIN}',
            f'spec.devices.constraints[0].distinctAttribute: Invalid value: "9": {C_NAME}',
        ],
        id="an odd attribute",
    ),
    pytest.param(
        claim(
            {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "gpu"}]},
            config=[{"requests": ["r/s", "r"], "opaque": {"driver": "d", "parameters": {}}}],
        ),
        [],
        id="a configuration of an alternative",
    ),
    pytest.param(
        config(requests=["nope"]),
        [f'spec.devices.config[0].requests[0]: Invalid value: "nope": {NO_REQUEST}'],
        id="a configuration for no request",
    ),
    pytest.param(
        config(opaque={"driver": "A b"}),
        [f'spec.devices.config[0].opaque.driver: Invalid value: "A b": {SUBDOMAIN}'],
        id="a configuration for an odd driver",
    ),
    pytest.param(
        config(opaque={"parameters": None}),
        ["spec.devices.config[0].opaque.parameters: Required value"],
        id="a configuration without parameters",
    ),
    pytest.param(
        config(opaque={"parameters": ["x"]}),
        [
            'spec.devices.config[0].opaque.parameters: Invalid value: "<value omitted>": must be '
            "a valid JSON object"
        ],
        id="parameters that are a list",
    ),
    pytest.param(
        config(opaque={"parameters": {"x": "y" * 10_240}}),
        ["spec.devices.config[0].opaque.parameters: Too long: may not be more than 10240 bytes"],
        id="parameters of more than 10 KiB",
    ),
    pytest.param(
        claim(config=[{}]),
        ["spec.devices.config[0].opaque: Required value"],
        id="a configuration of nothing",
    ),
]


@pytest.mark.parametrize(("obj", "messages"), CLAIMS)
def test_a_claim_gets_the_errors_of_kube_apiserver(obj, messages):
    assert create_errors("resourceclaims", obj) == messages
    template = named("resourceclaimtemplates", spec={"spec": obj["spec"]})
    assert create_errors("resourceclaimtemplates", template) == [
        f"spec.{message}" for message in messages
    ]


@pytest.mark.parametrize(
    ("expression", "start"),
    [
        pytest.param("1", "must evaluate to bool or the unknown type, not int", id="a number"),
        pytest.param(
            "device.capacity['d'].memory",
            "must evaluate to bool or the unknown type, not kubernetes.Quantity",
            id="a quantity",
        ),
        pytest.param(
            "device.nope",
            "compilation failed: ERROR: <input>:1:7: undefined field 'nope'\n",
            id="an unknown field",
        ),
        pytest.param(
            "device.attributes[",
            "compilation failed: ERROR: <input>:1:19: Syntax error",
            id="half an expression",
        ),
        pytest.param("", "compilation failed: ERROR: <input>:1:1: Syntax error", id="nothing"),
        pytest.param(
            "device.driver == 5",
            "compilation failed: ERROR: <input>:1:15: found no matching overload for '_==_'",
            id="a text compared with a number",
        ),
        pytest.param(
            "device.capacity['d'].memory > 5",
            "compilation failed: ERROR: ",
            id="a quantity compared with a number",
        ),
        pytest.param(
            "nope == 1",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'nope'",
            id="an unknown variable",
        ),
        pytest.param(
            "nope(device)",
            "compilation failed: ERROR: <input>:1:5: undeclared reference to 'nope'",
            id="an unknown function",
        ),
    ],
)
def test_a_selector_that_does_not_compile_is_refused(expression, start):
    pytest.importorskip("cel_expr_python")
    (message,) = create_errors("resourceclaims", selecting(expression))
    assert message.partition(f"{CEL}: Invalid value: ")[2].partition('": ')[2].startswith(start)


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("device.attributes['d'].healthy", id="an attribute, of unknown type"),
        pytest.param("device.driver == 'd' && 'd' in device.attributes", id="a driver"),
        pytest.param("device.capacity['d'].memory.compareTo(quantity('20')) >= 0", id="a quantity"),
        pytest.param("device.attributes[?'d'].x.orValue(false)", id="an optional attribute"),
        pytest.param("device.attributes['d'].all(k, v, v == 1)", id="a macro the runtime lacks"),
        pytest.param("ip('1.2.3.4').family() == 4", id="functions the runtime lacks"),
        pytest.param("1 < 2.0", id="numbers of two types"),
    ],
)
def test_a_selector_that_kube_apiserver_compiles_is_accepted(expression):
    assert create_errors("resourceclaims", selecting(expression)) == []


def test_a_selector_needs_its_expression():
    assert create_errors("resourceclaims", claim(request(selectors=[{}]))) == [
        f"{R}.selectors[0].cel: Required value"
    ]


def test_a_stored_claim_may_change_beside_its_spec_although_a_rule_is_newer_than_it():
    stored = created("resourceclaims", claim(request(count=-1)))
    labelled = copy.deepcopy(stored)
    labelled["metadata"]["labels"] = {"a": "b"}
    assert update_errors("resourceclaims", labelled, stored) == []


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        pytest.param({"extendedResourceName": "example.com/gpu"}, [], id="an extended resource"),
        pytest.param(
            {"extendedResourceName": "gpu"},
            [
                'spec.extendedResourceName: Invalid value: "gpu": must be a valid extended '
                "resource name"
            ],
            id="a resource that is not extended",
        ),
        pytest.param(
            {"config": [{"opaque": {"driver": "", "parameters": {}}}]},
            [
                "spec.config[0].opaque.driver: Required value",
                f'spec.config[0].opaque.driver: Invalid value: "": {SUBDOMAIN}',
            ],
            id="a configuration for no driver",
        ),
    ],
)
def test_a_device_class_gets_the_errors_of_kube_apiserver(spec, messages):
    assert create_errors("deviceclasses", named("deviceclasses", spec=spec)) == messages


def test_the_metadata_of_a_claim_template_has_labels_and_annotations_only():
    metadata = {"name": "x", "labels": {"a b": "c"}}
    template = named("resourceclaimtemplates", spec={"metadata": metadata, "spec": claim()["spec"]})
    assert create_errors("resourceclaimtemplates", template) == [
        f'spec.metadata.labels: Invalid value: "a b": {QUALIFIED}',
        "spec.metadata.name: Forbidden: cannot be set",
    ]


NO_ADMIN = (
    f"spec.devices.requests[1].adminAccess: Forbidden: admin access to devices requires the "
    f"`{ADMIN_ACCESS}: true` label on the containing namespace"
)


@pytest.mark.parametrize(
    ("labels", "allowed"),
    [
        pytest.param({ADMIN_ACCESS: "true"}, True, id="with the label"),
        pytest.param({ADMIN_ACCESS: "false"}, False, id="with another value"),
        pytest.param({}, False, id="without the label"),
    ],
)
def test_administrative_access_needs_the_label_of_the_namespace(labels, allowed):
    world = World(("namespaces", {"metadata": {"name": "default", "labels": labels}}))
    admin = request(adminAccess=True) | {"name": "s"}
    spec = claim(request(adminAccess=False), admin)["spec"]
    objects = {
        "resourceclaims": named("resourceclaims", spec=spec),
        "resourceclaimtemplates": named("resourceclaimtemplates", spec={"spec": spec}),
    }
    for plural, obj in objects.items():
        if allowed:
            assert create_errors(plural, obj, world) == []
        else:
            with pytest.raises(StatusError) as refused:
                created(plural, obj, world)
            assert refused.value.code == 422
            assert refused.value.message.endswith(NO_ADMIN)


RESULT = {"request": "r", "driver": "d.com", "pool": "p", "device": "a"}


def allocation(**result: Any) -> Obj:
    return {"devices": {"results": [RESULT | result]}}


def consumer(**fields: str) -> Obj:
    return {"resource": "pods", "name": "p", "uid": "1", **fields}


A = "status.allocation.devices"
D = "status.devices[0]"
REPORT = {"driver": "d.com", "pool": "p", "device": "a"}
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Up",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


@pytest.mark.parametrize(
    ("before", "after", "messages"),
    [
        pytest.param({}, {"allocation": allocation()}, [], id="an allocation"),
        pytest.param(
            {},
            {"allocation": allocation(request="nope", driver="", pool="", device="A")},
            [
                f'{A}.results[0].request: Invalid value: "nope": {NO_REQUEST}',
                f"{A}.results[0].driver: Required value",
                f'{A}.results[0].driver: Invalid value: "": {SUBDOMAIN}',
                f"{A}.results[0].pool: Required value",
                f'{A}.results[0].device: Invalid value: "A": {LABEL}',
            ],
            id="an allocation for a request that the claim does not have",
        ),
        pytest.param(
            {},
            {"allocation": {**allocation(), "nodeSelector": {"nodeSelectorTerms": []}}},
            [
                "status.allocation.nodeSelector.nodeSelectorTerms: Required value: must have at "
                "least one node selector term"
            ],
            id="an allocation on no nodes",
        ),
        pytest.param(
            {},
            {"allocation": allocation(shareID="x")},
            [
                f'{A}.results[0].shareID: Invalid value: "x": uid must be in RFC 4122 normalized '
                "form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters"
            ],
            id="a share with an odd id",
        ),
        pytest.param(
            {},
            {"allocation": {"devices": {"config": [{"source": "Sky", "requests": ["x"]}]}}},
            [
                f'{A}.config[0].source: Unsupported value: "Sky": supported values: "FromClaim", '
                '"FromClass"',
                f'{A}.config[0].requests[0]: Invalid value: "x": {NO_REQUEST}',
                f"{A}.config[0].opaque: Required value",
            ],
            id="an odd configuration",
        ),
        pytest.param(
            {"allocation": allocation()},
            {"reservedFor": [consumer(name="x"), consumer(name="y"), {"uid": "2"}]},
            [
                "status.reservedFor[2].resource: Required value",
                "status.reservedFor[2].name: Required value",
                'status.reservedFor[1]: Duplicate value: "1"',
            ],
            id="consumers that are none",
        ),
        pytest.param(
            {"allocation": allocation()},
            {"allocation": allocation(device="b")},
            [
                'status.allocation: Invalid value: {"devices":{"results":[{"request":"r",'
                '"driver":"d.com","pool":"p","device":"b"}]}}: field is immutable'
            ],
            id="another allocation",
        ),
        pytest.param(
            {"allocation": allocation()},
            {"devices": [{"driver": "d.com", "pool": "p", "device": "b"}]},
            [
                'status.devices[0]: Invalid value: "d.com/p/b": must be an allocated device in '
                "the claim"
            ],
            id="a report about a device that is not allocated",
        ),
        pytest.param(
            {"allocation": allocation()},
            {
                "devices": [
                    REPORT
                    | {
                        "conditions": [CONDITION, CONDITION | {"status": "Maybe", "reason": "1"}],
                        "data": [1],
                        "networkData": {
                            "interfaceName": "i" * 257,
                            "hardwareAddress": "h" * 129,
                            "ips": ["10.9.8.7/24", "10.9.8.7", "10.9.8.07/24", "10.9.8.7/24"],
                        },
                    }
                ]
            },
            [
                f'{D}.conditions[1].type: Duplicate value: "Ready"',
                f'{D}.conditions[1].status: Unsupported value: "Maybe": supported values: '
                '"False", "True", "Unknown"',
                f'{D}.conditions[1].reason: Invalid value: "1": a condition reason must start with '
                "alphabetic character, optionally followed by a string of alphanumeric characters "
                "or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or "
                "'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used "
                "for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
                f'{D}.data: Invalid value: "<value omitted>": must be a valid JSON object',
                f"{D}.networkData.interfaceName: Too long: may not be more than 256 bytes",
                f"{D}.networkData.hardwareAddress: Too long: may not be more than 128 bytes",
                f'{D}.networkData.ips[1]: Invalid value: "10.9.8.7": must be a valid address in '
                "CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)",
                f'{D}.networkData.ips[2]: Invalid value: "10.9.8.07/24": must be in canonical form '
                '("10.9.8.7/24")',
                f'{D}.networkData.ips[3]: Duplicate value: "10.9.8.7/24"',
            ],
            id="a report with odd conditions, data and addresses",
        ),
        pytest.param(
            {"allocation": allocation()},
            {
                "devices": [
                    REPORT
                    | {
                        "conditions": [CONDITION | {"type": f"t{n}"} for n in range(8)],
                        "data": {"a": 1},
                        "networkData": {"ips": ["10.9.8.7/24", "2001:db8::1/64"]},
                    }
                ]
            },
            [],
            id="a report with conditions, data and addresses",
        ),
    ],
)
def test_the_status_of_a_claim_gets_the_errors_of_kube_apiserver(before, after, messages):
    stored = created("resourceclaims", claim()) | {"status": before}
    new = stored | {"status": before | after}
    assert update_errors("resourceclaims", new, stored, subresource="status") == messages


def test_a_claim_that_is_being_deleted_gets_no_new_consumer():
    stored = created("resourceclaims", claim())
    stored["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    stored["status"] = {"allocation": allocation(), "reservedFor": [consumer()]}
    more = stored | {"status": stored["status"] | {"reservedFor": [consumer(uid="2")]}}
    assert update_errors("resourceclaims", more, stored, subresource="status") == [
        "status.reservedFor: Forbidden: new entries may not be added while "
        "`deallocationRequested` or `deletionTimestamp` are set"
    ]
    less = stored | {"status": stored["status"] | {"reservedFor": []}}
    assert update_errors("resourceclaims", less, stored, subresource="status") == []
