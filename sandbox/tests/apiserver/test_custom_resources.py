"""Custom resources: a definition written is a kind served, with everything its schema says."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import Cluster

TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
MERGE = "application/merge-patch+json"


async def cluster_with(*definitions: dict[str, Any]) -> Cluster:
    cluster = Cluster()
    for each in definitions or (definition(),):
        await cluster.ok("POST", DEFINITIONS, each)
    return cluster


async def test_a_definition_is_established_as_soon_as_it_is_created():
    found = await Cluster().ok("POST", DEFINITIONS, definition())
    told = [(c["type"], c["status"], c["reason"]) for c in found["status"]["conditions"]]
    assert told == [
        ("NamesAccepted", "True", "NoConflicts"),
        ("Established", "True", "InitialNamesAccepted"),
    ]
    assert found["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert found["status"]["acceptedNames"] == {
        "kind": "Car",
        "listKind": "CarList",
        "plural": "cars",
        "singular": "car",
        "shortNames": ["cr"],
        "categories": ["all"],
    }
    assert found["status"]["storedVersions"] == ["v1"]
    assert found["spec"]["conversion"] == {"strategy": "None"}


async def test_a_status_that_a_client_writes_gets_the_decision_about_the_names_again():
    """The naming and the establishing controller write what a client's status lacks."""
    cluster = await cluster_with()
    own = {"type": "Seen", "status": "True", "reason": "ByMe", "message": ""}
    found = await cluster.ok(
        "PATCH",
        f"{DEFINITIONS}/cars.example.com/status",
        {"status": {"conditions": [own], "acceptedNames": None}},
        content_type=MERGE,
    )
    told = [(c["type"], c["status"]) for c in found["status"]["conditions"]]
    assert told == [("Seen", "True"), ("NamesAccepted", "True"), ("Established", "True")]
    assert found["status"]["acceptedNames"]["kind"] == "Car"
    assert found["metadata"]["generation"] == 1
    assert await cluster.names(CARS) == []


async def test_the_kind_of_a_definition_is_in_both_discovery_forms_and_openapi():
    cluster = await cluster_with()
    listed = await cluster.ok("GET", "/apis/example.com/v1")
    assert [(r["name"], r["kind"]) for r in listed["resources"]] == [
        ("cars", "Car"),
        ("cars/status", "Car"),
    ]
    assert listed["resources"][0]["shortNames"] == ["cr"]
    assert listed["resources"][0]["categories"] == ["all"]
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    groups = (await cluster.ok("GET", "/apis", accept=accept))["items"]
    [group] = [each for each in groups if each["metadata"].get("name") == "example.com"]
    assert group["versions"][0]["resources"][0]["responseKind"] == {
        "group": "example.com",
        "version": "v1",
        "kind": "Car",
    }
    paths = (await cluster.ok("GET", "/openapi/v3"))["paths"]
    assert "apis/example.com/v1" in paths
    document = await cluster.ok("GET", "/openapi/v3/apis/example.com/v1")
    schema = document["components"]["schemas"]["com.example.v1.Car"]
    assert schema["properties"]["spec"]["properties"]["wheels"]["default"] == 4
    assert schema["x-kubernetes-group-version-kind"] == [
        {"group": "example.com", "kind": "Car", "version": "v1"}
    ]
    old = (await cluster.ok("GET", "/openapi/v2"))["definitions"]["com.example.v1.Car"]
    assert "default" not in old["properties"]["spec"]["properties"]["wheels"]


async def test_an_object_is_defaulted_pruned_and_counted():
    cluster = await cluster_with()
    sent = car(colour="green", doors=[{"name": "left", "lock": 1}], extras={"any": {"thing": 1}})
    sent["status"] = {"phase": "sold"}
    found = await cluster.ok("POST", CARS, sent)
    assert found["spec"] == {
        "color": "red",
        "wheels": 4,
        "doors": [{"name": "left", "open": False}],
        "extras": {"any": {"thing": 1}},
    }
    assert "status" not in found
    assert found["metadata"]["generation"] == 1
    patched = await cluster.ok("PATCH", f"{CARS}/a", {"spec": {"wheels": 6}}, content_type=MERGE)
    assert patched["metadata"]["generation"] == 2
    status = await cluster.ok(
        "PATCH",
        f"{CARS}/a/status",
        {"spec": {"wheels": 8}, "status": {"phase": "sold"}},
        content_type=MERGE,
    )
    assert (status["spec"]["wheels"], status["status"]) == (6, {"phase": "sold"})
    assert status["metadata"]["generation"] == 2


async def test_unknown_fields_are_warned_about_and_refused_when_strict():
    cluster = await cluster_with()
    reply = await cluster.reply("POST", CARS, car(colour="x", doors=[{"name": "l", "lock": 1}]))
    assert reply.headers == (
        ("Warning", '299 - "unknown field \\"spec.colour\\""'),
        ("Warning", '299 - "unknown field \\"spec.doors[0].lock\\""'),
    )
    code, body = await cluster.call(
        "POST", CARS, car("b", colour="x"), query={"fieldValidation": "Strict"}
    )
    assert code == 400
    assert 'strict decoding error: unknown field "spec.colour"' in body["message"]


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param(
            {"color": "green"},
            ['spec.color: Unsupported value: "green": supported values: "blue", "red"'],
            id="an enum is a closed list",
        ),
        pytest.param(
            {"wheels": "four"},
            [
                'spec.wheels: Invalid value: "string": spec.wheels in body must be of type '
                'integer: "string"'
            ],
            id="a type is kept to",
        ),
        pytest.param(
            {"wheels": 2},
            [
                "spec.wheels: Invalid value: 2: spec.wheels in body should be greater than or "
                "equal to 3"
            ],
            id="a minimum is kept to",
        ),
        pytest.param(
            {"wheels": 20},
            [
                "spec.wheels: Invalid value: 20: spec.wheels in body should be less than or "
                "equal to 18"
            ],
            id="a maximum is kept to",
        ),
        pytest.param(
            {"plate": "hello"},
            [
                'spec.plate: Invalid value: "hello": spec.plate in body should match '
                "'^[A-Z]+-[0-9]+$'"
            ],
            id="a pattern is kept to",
        ),
        pytest.param(
            {"plate": "ABCDEFGH-1"},
            ["spec.plate: Too long: may not be more than 9 bytes"],
            id="a length is kept to",
        ),
        pytest.param(
            {"doors": [{"name": "a"}, {"name": "a"}]},
            ['spec.doors[1]: Duplicate value: {"name":"a"}'],
            id="keys of a list that is a map differ",
        ),
        pytest.param(
            {"tags": ["a", "b", "a"]},
            ['spec.tags[2]: Duplicate value: "a"'],
            id="items of a list that is a set differ",
        ),
        pytest.param(
            {"doors": [{"open": True}]},
            ["spec.doors[0].name: Required value"],
            id="a required field is missing",
        ),
        pytest.param(
            {"doors": [{"name": str(i)} for i in range(6)]},
            ["spec.doors: Too many: 6: must have at most 5 items"],
            id="a number of items is kept to",
        ),
        pytest.param(
            {"limits": {"a": "b"}},
            [
                'spec.limits.a: Invalid value: "string": spec.limits.a in body must be of type '
                'number: "string"'
            ],
            id="values of a map have its type",
        ),
        pytest.param({"note": None}, [], id="null is a value where the schema allows it"),
        pytest.param({"wheels": None}, [], id="null where there is a default takes the default"),
        pytest.param({"port": "http"}, [], id="int-or-string takes text"),
        pytest.param({"port": 80}, [], id="int-or-string takes a number"),
        pytest.param(
            {"port": True},
            [
                'spec.port: Invalid value: "boolean": spec.port in body must be of type '
                'integer,string: "boolean"'
            ],
            id="int-or-string takes nothing else",
        ),
    ],
)
async def test_a_custom_resource_is_checked_against_its_schema(spec, faults):
    cluster = await cluster_with()
    code, body = await cluster.call("POST", CARS, car(**spec))
    if not faults:
        assert code == 201, body
        return
    shown = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
    assert (code, body["message"]) == (422, f'Car.example.com "a" is invalid: {shown}')


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        pytest.param({"tags": None}, {}, id="a list, as Go writes one that is nil"),
        pytest.param({"extras": None}, {}, id="an object with fields of any name"),
        pytest.param({"limits": {"a": None, "b": 1}}, {"limits": {"b": 1}}, id="a value of a map"),
        pytest.param(
            {"doors": [{"name": "a", "open": None, "rest": None}]},
            {"doors": [{"name": "a", "open": False}]},
            id="a field of an item, with a default and undeclared",
        ),
        pytest.param({"extras": {"x": None}}, {"extras": {"x": None}}, id="an undeclared field"),
        pytest.param({"note": None}, {"note": None}, id="null is allowed"),
    ],
)
async def test_a_null_that_the_schema_does_not_allow_is_dropped(spec, kept):
    """apiextensions-apiserver v1.36 pkg/apiserver/schema/defaulting/prune.go."""
    cluster = await cluster_with()
    made = await cluster.ok("POST", CARS, car(**spec) | {"status": None})
    assert made["spec"] == {"color": "red", "wheels": 4} | kept
    assert "status" not in made


async def test_a_null_in_a_list_is_refused():
    cluster = await cluster_with()
    code, body = await cluster.call("POST", CARS, car(tags=[None]))
    assert code == 422
    assert 'spec.tags[0] in body must be of type string: "null"' in body["message"]


async def test_a_null_in_a_status_is_dropped():
    cluster = await cluster_with()
    made = await cluster.ok("POST", CARS, car())
    changed = made | {"status": {"phase": None, "replicas": 1}}
    found = await cluster.ok("PUT", f"{CARS}/a/status", changed)
    assert found["status"] == {"replicas": 1}


async def test_a_wrong_status_is_refused():
    cluster = await cluster_with()
    await cluster.ok("POST", CARS, car())
    code, body = await cluster.call(
        "PATCH", f"{CARS}/a/status", {"status": {"phase": 1}}, content_type=MERGE
    )
    assert code == 422
    assert "status.phase in body must be of type string" in body["message"]


async def test_the_table_has_the_columns_of_the_definition():
    columns = [
        {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
        {"name": "Wheels", "type": "integer", "jsonPath": ".spec.wheels", "priority": 1},
        {
            "name": "Left",
            "type": "boolean",
            "jsonPath": '.spec.doors[?(@.name=="left")].open',
        },
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    cluster = await cluster_with(definition(additionalPrinterColumns=columns))
    await cluster.ok("POST", CARS, car("a", doors=[{"name": "left", "open": True}]))
    await cluster.ok("POST", CARS, car("b"))
    cluster.clock.advance(90)
    table = await cluster.ok("GET", CARS, accept=TABLE)
    assert [(c["name"], c["type"], c["priority"]) for c in table["columnDefinitions"]] == [
        ("Name", "string", 0),
        ("Color", "string", 0),
        ("Wheels", "integer", 1),
        ("Left", "boolean", 0),
        ("Age", "date", 0),
    ]
    assert [row["cells"] for row in table["rows"]] == [
        ["a", "red", 4, True, "90s"],
        ["b", "red", 4, None, "90s"],
    ]


async def test_a_table_without_columns_of_its_own_shows_name_and_age():
    cluster = await cluster_with()
    await cluster.ok("POST", CARS, car())
    table = await cluster.ok("GET", CARS, accept=TABLE)
    assert [row["cells"] for row in table["rows"]] == [["a", "0s"]]


async def test_objects_are_watched_like_any_other():
    cluster = await cluster_with()
    watch = await cluster.watch(CARS)
    await cluster.ok("POST", CARS, car())
    await cluster.ok("DELETE", f"{CARS}/a")
    assert await watch.seen(2) == [("ADDED", "a"), ("DELETED", "a")]
    await watch.close()


async def test_versions_differ_in_their_name_only():
    versions = definition()["spec"]["versions"]
    versions.append(versions[0] | {"name": "v2", "storage": True})
    versions[0]["storage"] = False
    versions.append(versions[0] | {"name": "v3", "served": False})
    cluster = await cluster_with(definition(spec__versions=versions))
    await cluster.ok("POST", CARS, car())
    assert (await cluster.ok("GET", f"{CARS}/a"))["apiVersion"] == "example.com/v1"
    listed = await cluster.ok("GET", "/apis/example.com/v2/cars")
    assert (listed["kind"], listed["apiVersion"]) == ("CarList", "example.com/v2")
    assert [each["apiVersion"] for each in listed["items"]] == ["example.com/v2"]
    assert (await cluster.call("GET", "/apis/example.com/v3/cars"))[0] == 404
    group = await cluster.ok("GET", "/apis/example.com")
    assert [each["version"] for each in group["versions"]] == ["v2", "v1"]


async def test_objects_move_to_a_new_storage_version_when_written():
    cluster = await cluster_with()
    await cluster.ok("POST", CARS, car())
    versions = definition()["spec"]["versions"]
    versions.append(versions[0] | {"name": "v2", "storage": True})
    versions[0]["storage"] = False
    await cluster.ok(
        "PATCH",
        f"{DEFINITIONS}/cars.example.com",
        {"spec": {"versions": versions}},
        content_type=MERGE,
    )
    found = await cluster.ok("GET", f"{DEFINITIONS}/cars.example.com")
    assert found["status"]["storedVersions"] == ["v1", "v2"]
    assert (await cluster.ok("GET", f"{CARS}/a"))["apiVersion"] == "example.com/v1"
    other = CARS.replace("/v1/", "/v2/")
    assert (await cluster.ok("GET", f"{other}/a"))["apiVersion"] == "example.com/v2"
    assert await cluster.names(other) == ["a"]


async def test_deleting_a_definition_deletes_its_objects_and_ends_the_kind():
    cluster = await cluster_with()
    await cluster.ok("POST", CARS, car())
    watch = await cluster.watch(CARS)
    assert await watch.seen(1) == [("ADDED", "a")]
    await cluster.ok("DELETE", f"{DEFINITIONS}/cars.example.com")
    assert await watch.seen(1) == [("DELETED", "a")]
    await watch.close()
    assert (await cluster.call("GET", CARS))[0] == 404
    assert (await cluster.call("GET", f"{DEFINITIONS}/cars.example.com"))[0] == 404
    assert (await cluster.call("GET", "/apis/example.com"))[0] == 404


async def test_a_definition_waits_for_objects_with_finalizers_and_takes_no_new_ones():
    cluster = await cluster_with()
    held = car()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await cluster.ok("POST", CARS, held)
    await cluster.ok("DELETE", f"{DEFINITIONS}/cars.example.com")
    found = await cluster.ok("GET", f"{DEFINITIONS}/cars.example.com")
    assert found["status"]["conditions"][-1]["type"] == "Terminating"
    code, body = await cluster.call("POST", CARS, car("b"))
    assert (code, body["reason"]) == (405, "MethodNotAllowed")
    await cluster.ok("PATCH", f"{CARS}/a", {"metadata": {"finalizers": None}}, content_type=MERGE)
    assert (await cluster.call("GET", f"{DEFINITIONS}/cars.example.com"))[0] == 404


async def test_a_deleted_namespace_takes_custom_resources_along():
    cluster = await cluster_with()
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}
    await cluster.ok("POST", "/api/v1/namespaces", space)
    await cluster.ok("POST", CARS.replace("default", "x"), car())
    await cluster.ok("DELETE", "/api/v1/namespaces/x")
    assert await cluster.names("/apis/example.com/v1/cars") == []


async def test_names_another_definition_has_are_not_accepted():
    other = definition(spec__names={"kind": "Car", "plural": "autos", "shortNames": ["au"]})
    cluster = await cluster_with(definition(), other)
    found = await cluster.ok("GET", f"{DEFINITIONS}/autos.example.com")
    told = [(c["type"], c["status"], c["reason"]) for c in found["status"]["conditions"]]
    assert told == [
        ("NamesAccepted", "False", "SingularConflict"),
        ("Established", "False", "NotAccepted"),
    ]
    assert (await cluster.call("GET", "/apis/example.com/v1/autos"))[0] == 404


async def test_strategic_merge_patches_are_not_for_custom_resources():
    cluster = await cluster_with()
    await cluster.ok("POST", CARS, car())
    code, body = await cluster.call(
        "PATCH", f"{CARS}/a", {}, content_type="application/strategic-merge-patch+json"
    )
    assert code == 415
    assert "application/merge-patch+json" in body["message"]
    assert "strategic" not in body["message"]


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        pytest.param(
            definition(spec__scope="Global"),
            'spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced"',
            id="a scope is one of two",
        ),
        pytest.param(
            definition(spec__group="cars"),
            'spec.group: Invalid value: "cars": should be a domain with at least one dot',
            id="a group is a domain",
        ),
        pytest.param(
            definition(spec__group="cars.k8s.io"),
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups "
            'must have approval annotation "api-approved.kubernetes.io", see '
            "https://github.com/kubernetes/enhancements/pull/1111",
            id="groups of Kubernetes need approval",
        ),
        pytest.param(
            definition(spec__conversion={"strategy": "Webhook"}),
            "spec.conversion.webhook: Required value: required when strategy is set to Webhook",
            id="a conversion by a webhook needs one",
        ),
        pytest.param(
            definition(spec__conversion={"strategy": "Webhook", "webhook": {"clientConfig": {}}}),
            "[spec.conversion.webhook.clientConfig: Required value: exactly one of url or service "
            "is required, spec.conversion.webhook.conversionReviewVersions: Required value: must "
            "specify one of v1, v1beta1]",
            id="a webhook that converts has an address and versions",
        ),
        pytest.param(
            definition(storage=False),
            'spec.versions: Invalid value: ["v1"]: must have exactly one version marked as '
            "storage version",
            id="one version is stored",
        ),
        pytest.param(
            definition(schema={}),
            "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required",
            id="a version has a schema",
        ),
        pytest.param(
            definition(schema={"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}}),
            "spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value: must "
            "not be empty for specified object fields",
            id="a value has a type",
        ),
        pytest.param(
            definition(
                additionalPrinterColumns=[{"name": "A", "type": "text", "jsonPath": ".spec"}]
            ),
            'spec.versions[0].additionalPrinterColumns[0].type: Unsupported value: "text": '
            'supported values: "boolean", "date", "integer", "number", "string"',
            id="a column has a type that can be printed",
        ),
        pytest.param(
            definition(
                additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": ".a["}]
            ),
            'spec.versions[0].additionalPrinterColumns[0].jsonPath: Invalid value: ".a[": '
            "unexpected '[' in JSONPath '.a['",
            id="a path of a column can be read",
        ),
    ],
)
async def test_a_definition_that_cannot_be_served_is_refused(changed, fault):
    name = changed["metadata"]["name"]
    code, body = await Cluster().call("POST", DEFINITIONS, changed)
    shown = f'CustomResourceDefinition.apiextensions.k8s.io "{name}" is invalid: {fault}'
    assert (code, body["message"]) == (422, shown)


@pytest.mark.parametrize(
    ("kind", "plural", "spec", "cells"),
    [
        pytest.param(
            "PodGroup",
            "podgroups",
            {"minMember": 3, "scheduleTimeoutSeconds": 10, "minResources": {"cpu": 1}},
            ["a", None, 3, None, None, None, "0s"],
            id="a pod group",
        ),
        pytest.param(
            "ElasticQuota",
            "elasticquotas",
            {"min": {"cpu": "2"}, "max": {"cpu": "4", "nvidia.com/gpu": 1}},
            ["a", None, '{"cpu":"4","nvidia.com/gpu":1}', "0s"],
            id="an elastic quota",
        ),
    ],
)
async def test_a_new_cluster_serves_the_kinds_of_scheduler_plugins(kind, plural, spec, cells):
    cluster = Cluster()
    path = f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/{plural}"
    sent = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "a"},
        "spec": spec,
    }
    assert (await cluster.ok("POST", path, sent))["spec"] == spec
    table = await cluster.ok("GET", path, accept=TABLE)
    assert [row["cells"] for row in table["rows"]] == [cells]
    wrong = sent | {"metadata": {"name": "b"}, "spec": {"minMember": "x", "max": {"cpu": "?"}}}
    assert (await cluster.call("POST", path, wrong))[0] == 422


async def test_scope_and_kind_of_a_definition_are_immutable():
    cluster = await cluster_with()
    path = f"{DEFINITIONS}/cars.example.com"
    code, body = await cluster.call(
        "PATCH", path, {"spec": {"scope": "Cluster"}}, content_type=MERGE
    )
    assert code == 422
    assert 'spec.scope: Invalid value: "Cluster": field is immutable' in body["message"]


METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


async def test_informers_of_metadata_follow_custom_resources_from_a_streamed_list():
    cluster = await cluster_with()
    await cluster.ok("POST", CARS, car())
    watch = await cluster.watch(
        CARS,
        accept=METADATA,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
    )
    first, bookmark = await watch.event(), await watch.event()
    assert (first["type"], first["object"]["kind"]) == ("ADDED", "PartialObjectMetadata")
    assert first["object"]["metadata"]["name"] == "a"
    assert "spec" not in first["object"]
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    await cluster.ok("DELETE", CARS)
    assert await watch.seen(1) == [("DELETED", "a")]
    await watch.close()
    listed = await cluster.ok("GET", CARS, accept=METADATA.replace("Metadata;", "MetadataList;"))
    assert (listed["kind"], listed["items"]) == ("PartialObjectMetadataList", [])


async def test_a_dry_run_of_deleting_a_collection_deletes_nothing():
    cluster = await cluster_with()
    await cluster.ok("POST", CARS, car())
    await cluster.ok("DELETE", CARS, query={"dryRun": "All"})
    assert await cluster.names(CARS) == ["a"]


async def test_definitions_are_taken_up_again_after_a_restart():
    cluster = await cluster_with()
    await cluster.ok("POST", CARS, car())
    cluster.server.reload()
    assert await cluster.names(CARS) == ["a"]


@pytest.mark.parametrize(
    "odd",
    [None, {}, {"conditions": None}, {"conditions": [{}]}, {"conditions": [None]},
     {"conditions": [{"type": "Established"}]}, {"conditions": [{"status": "True"}]}],
)  # fmt: skip
async def test_a_definition_of_an_odd_status_goes_with_its_last_object(
    odd: Any, caplog: pytest.LogCaptureFixture
):
    cluster = await cluster_with()
    kept = car()
    kept["metadata"]["finalizers"] = ["example.com/wait"]
    await cluster.ok("POST", CARS, kept)
    path = f"{DEFINITIONS}/cars.example.com"
    found = await cluster.ok("GET", path)
    await cluster.ok("PUT", f"{path}/status", found | {"status": odd})
    await cluster.ok("DELETE", path)
    assert [each.getMessage() for each in caplog.records if each.exc_info] == []
