"""Getting and listing: selectors, pages, versions, and the forms a client may ask for."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from moorage.kinds.status import StatusError
from moorage_sandbox.apiserver.verbs.pages import TOO_OLD
from moorage_sandbox.apiserver.wire.negotiate import JSON, PROTOBUF, Accepted, Form, negotiate
from moorage_sandbox.storage.watch_log import Limits
from sandbox.tests.apiserver.harness import (
    CONFIG_MAPS,
    PODS,
    Cluster,
    binding,
    config_map,
    failure,
    namespace,
    pod,
)

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


async def _with(*names: str, limits: Limits | None = None) -> Cluster:
    cluster = Cluster(limits=limits)
    for name in names:
        await cluster.ok("POST", CONFIG_MAPS, config_map(name))
    return cluster


async def test_a_read_of_an_unknown_object_is_not_found():
    assert await Cluster().call("GET", f"{PODS}/x") == failure(
        404, "NotFound", 'pods "x" not found', {"name": "x", "kind": "pods"}
    )


async def test_not_found_names_resource_and_group():
    path = "/apis/apps/v1/namespaces/default/deployments/x"
    assert await Cluster().call("GET", path) == failure(
        404,
        "NotFound",
        'deployments.apps "x" not found',
        {"name": "x", "group": "apps", "kind": "deployments"},
    )


async def test_a_list_is_in_order_of_names_whatever_the_order_of_creation():
    cluster = await _with("c", "a", "b")
    found = await cluster.ok("GET", CONFIG_MAPS)
    assert [item["metadata"]["name"] for item in found["items"]] == ["a", "b", "c"]
    assert {key: value for key, value in found.items() if key != "items"} == {
        "kind": "ConfigMapList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": str(cluster.server.store.version)},
    }


async def test_an_empty_list_has_items():
    assert (await Cluster().ok("GET", CONFIG_MAPS))["items"] == []


async def test_a_list_of_all_namespaces_and_of_one():
    cluster = await _with("b")
    await cluster.ok("POST", "/api/v1/namespaces", namespace("aaa"))
    await cluster.ok("POST", "/api/v1/namespaces/aaa/configmaps", config_map("z"))
    assert await cluster.names("/api/v1/configmaps") == ["z", "b"]
    assert await cluster.names("/api/v1/namespaces/aaa/configmaps") == ["z"]
    assert await cluster.names("/api/v1/namespaces/aa/configmaps") == []


SELECTED = [
    pytest.param({"labelSelector": "app=web"}, ["a", "b"], id="label equals"),
    pytest.param({"labelSelector": "app in (web,db),tier!=1"}, ["b", "c"], id="labels combined"),
    pytest.param({"labelSelector": "!app"}, ["d"], id="label absent"),
    pytest.param({"fieldSelector": "metadata.name=b"}, ["b"], id="by name"),
    pytest.param({"fieldSelector": "spec.nodeName="}, ["a", "c", "d"], id="not bound"),
    pytest.param({"fieldSelector": "spec.nodeName!="}, ["b"], id="bound"),
    pytest.param(
        {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"},
        ["a", "b", "c", "d"],
        id="the scheduler's selector of pods",
    ),
    pytest.param(
        {"fieldSelector": "spec.nodeName=n1", "labelSelector": "app=db"}, [], id="both must hold"
    ),
    pytest.param({"fieldSelector": "metadata.namespace=other"}, [], id="by namespace"),
]


@pytest.mark.parametrize(("query", "expected"), SELECTED)
async def test_lists_are_filtered_by_label_and_field_selectors(query, expected):
    cluster = Cluster()
    labels = {"a": {"app": "web", "tier": "1"}, "b": {"app": "web"}, "c": {"app": "db"}, "d": {}}
    for name, its in labels.items():
        await cluster.ok("POST", PODS, pod(name, labels=its))
    await cluster.ok("POST", f"{PODS}/b/binding", binding("b"))
    assert await cluster.names(PODS, **query) == expected


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param(
            {"fieldSelector": "spec.image=x"},
            "field label not supported: spec.image",
            id="a field that cannot be selected by",
        ),
        pytest.param(
            {"fieldSelector": "spec.nodeName"},
            "invalid selector: 'spec.nodeName'; can't understand 'spec.nodeName'",
            id="a field selector without an operator",
        ),
        pytest.param(
            {"labelSelector": "a=(b"},
            "unable to parse requirement: found '(', expected: identifier",
            id="a label selector that cannot be parsed",
        ),
        pytest.param(
            {"limit": "many"},
            'strconv.ParseInt: parsing "many": invalid syntax (limit)',
            id="a limit that is no number",
        ),
        pytest.param(
            {"resourceVersion": "new"},
            'Invalid value: "new": resourceVersion is not a number',
            id="a version that is no number",
        ),
    ],
)
async def test_faulty_list_parameters_are_refused(query, message):
    found = await Cluster().call("GET", PODS, query=query)
    assert found == failure(400, "BadRequest", message)


class TestPages:
    """limit and continue: pages of one list belong together whatever is written in between."""

    async def test_pages_show_the_list_as_of_the_first_page(self):
        cluster = await _with("a", "b", "c", "d", "e")
        first = await cluster.ok("GET", CONFIG_MAPS, query={"limit": "2"})
        version = first["metadata"]["resourceVersion"]
        assert first["metadata"]["remainingItemCount"] == 3
        await cluster.ok("DELETE", f"{CONFIG_MAPS}/d")
        await cluster.ok("POST", CONFIG_MAPS, config_map("bb"))
        second = await self._next(cluster, first, limit="2")
        third = await self._next(cluster, second, limit="2")
        pages = [[item["metadata"]["name"] for item in page["items"]] for page in (first, second)]
        assert [*pages, [item["metadata"]["name"] for item in third["items"]]] == [
            ["a", "b"],
            ["c", "d"],
            ["e"],
        ]
        assert second["metadata"]["resourceVersion"] == version
        assert third["metadata"] == {"resourceVersion": version}

    async def test_the_last_page_has_no_continue_token(self):
        cluster = await _with("a", "b")
        found = await cluster.ok("GET", CONFIG_MAPS, query={"limit": "2"})
        assert set(found["metadata"]) == {"resourceVersion"}

    async def test_a_list_with_a_selector_has_no_remaining_item_count(self):
        cluster = await _with("a", "b")
        query = {"limit": "1", "fieldSelector": "metadata.namespace=default"}
        found = await cluster.ok("GET", CONFIG_MAPS, query=query)
        assert set(found["metadata"]) == {"resourceVersion", "continue"}

    async def test_an_expired_page_offers_a_token_for_the_current_list(self):
        cluster = await _with("a", "b", "c", limits=Limits(changes=10))
        first = await cluster.ok("GET", CONFIG_MAPS, query={"limit": "1"})
        for number in range(10):
            await cluster.ok("POST", CONFIG_MAPS, config_map(f"b{number}"))
        query = {"limit": "99", "continue": first["metadata"]["continue"]}
        page = await cluster.ok("GET", CONFIG_MAPS, query=query)
        assert [item["metadata"]["name"] for item in page["items"]] == ["b", "c"]
        await cluster.ok("DELETE", f"{CONFIG_MAPS}/b0")
        status, body = await cluster.call("GET", CONFIG_MAPS, query=query)
        assert (status, body["reason"], body["message"]) == (410, "Expired", TOO_OLD)
        rest = await self._next(cluster, body, limit="99")
        names = [item["metadata"]["name"] for item in rest["items"]]
        assert names == ["b", *(f"b{number}" for number in range(1, 10)), "c"]

    async def test_a_page_holds_no_memory_beyond_the_watch_log(self):
        cluster = await _with(*(f"a{number}" for number in range(200)))
        record = cluster.server.store.shelf("configmaps").get(("default", "a0"))
        held = sys.getrefcount(record)
        tokens = []
        for number in range(100):
            await cluster.ok("POST", CONFIG_MAPS, config_map(f"x{number}"))
            page = await cluster.ok("GET", CONFIG_MAPS, query={"limit": "1"})
            tokens.append((page["metadata"]["continue"], 200 + number))
        for token, count in tokens:
            query = {"continue": token}
            assert len((await cluster.ok("GET", CONFIG_MAPS, query=query))["items"]) == count
        assert sys.getrefcount(record) == held, "no list is kept"

    async def test_a_page_has_the_version_of_its_token_and_no_other(self):
        cluster = await _with("a", "b")
        page = await cluster.ok("GET", CONFIG_MAPS, query={"limit": "1"})
        query = {"continue": page["metadata"]["continue"], "resourceVersion": "1"}
        code, body = await cluster.call("GET", CONFIG_MAPS, query=query)
        text = "specifying resource version is not allowed when using continue"
        assert (code, body["message"]) == (400, text)
        await cluster.ok("GET", CONFIG_MAPS, query=query | {"resourceVersion": "0"})

    async def test_a_foreign_continue_token_is_refused(self):
        status, body = await Cluster().call("GET", PODS, query={"continue": "?!"})
        assert (status, body["reason"]) == (400, "BadRequest")

    @staticmethod
    async def _next(cluster: Cluster, page: dict[str, Any], **query: str) -> Any:
        query["continue"] = page["metadata"]["continue"]
        return await cluster.ok("GET", CONFIG_MAPS, query=query)


class TestVersions:
    """resourceVersion and resourceVersionMatch of lists."""

    async def test_a_list_at_any_past_version_shows_the_current_objects(self):
        cluster = await _with("a", "b")
        for version in ("", "0", "1", str(cluster.server.store.version)):
            assert await cluster.names(CONFIG_MAPS, resourceVersion=version) == ["a", "b"]

    async def test_a_list_of_a_future_version_is_refused_as_too_large(self):
        cluster = Cluster()
        now = cluster.server.store.version
        assert await cluster.call("GET", PODS, query={"resourceVersion": "999"}) == failure(
            504,
            "Timeout",
            f"Timeout: Too large resource version: 999, current: {now}",
            {
                "causes": [
                    {
                        "reason": "ResourceVersionTooLarge",
                        "message": "Too large resource version",
                    }
                ],
                "retryAfterSeconds": 1,
            },
        )

    async def test_an_exact_list_of_the_current_state_keeps_its_version(self):
        cluster = await _with("a")
        version = str(cluster.server.store.version)
        await cluster.ok("POST", PODS, pod("other"))
        query = {"resourceVersion": version, "resourceVersionMatch": "Exact"}
        found = await cluster.ok("GET", CONFIG_MAPS, query=query)
        assert found["metadata"] == {"resourceVersion": version}

    async def test_an_exact_list_of_a_past_version_is_answered_until_it_expires(self):
        cluster = await _with("a", limits=Limits(changes=2))
        version = str(cluster.server.store.version)
        query = {"resourceVersion": version, "resourceVersionMatch": "Exact"}
        for name in ("b", "c"):
            await cluster.ok("POST", CONFIG_MAPS, config_map(name))
            assert await cluster.names(CONFIG_MAPS, **query) == ["a"]
        await cluster.ok("POST", CONFIG_MAPS, config_map("d"))
        assert await cluster.call("GET", CONFIG_MAPS, query=query) == failure(
            410, "Expired", "The resourceVersion for the provided list is too old."
        )

    @pytest.mark.parametrize(
        ("query", "message"),
        [
            pytest.param(
                {"resourceVersionMatch": "Exact"},
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless "
                "resourceVersion is provided",
                id="a match without a version",
            ),
            pytest.param(
                {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
                'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for '
                'resourceVersion "0"',
                id="exactly any version",
            ),
            pytest.param(
                {"resourceVersionMatch": "Near", "resourceVersion": "1"},
                'resourceVersionMatch: Unsupported value: "Near": supported values: "Exact", '
                '"NotOlderThan"',
                id="a match nobody knows",
            ),
            pytest.param(
                {"sendInitialEvents": "true"},
                "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
                id="initial events of a list",
            ),
        ],
    )
    async def test_contradictory_list_options_are_refused(self, query, message):
        status, body = await Cluster().call("GET", PODS, query=query)
        assert (status, body["reason"], body["message"]) == (
            422,
            "Invalid",
            f'ListOptions.meta.k8s.io "" is invalid: {message}',
        )


class TestForms:
    """Tables, metadata only, and what is not served."""

    @pytest.mark.parametrize(
        ("accept", "expected"),
        [
            pytest.param("", Form.OBJECT, id="nothing said"),
            pytest.param("*/*", Form.OBJECT, id="anything"),
            pytest.param(TABLE, Form.TABLE, id="kubectl get"),
            pytest.param("application/json, */*", Form.OBJECT, id="kubectl's discovery"),
            pytest.param(
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                Form.METADATA,
                id="metadata only",
            ),
            pytest.param(
                "application/json;q=0.5,application/json;as=Table;v=v1;g=meta.k8s.io;q=0.9",
                Form.TABLE,
                id="preference by quality",
            ),
            pytest.param(
                "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io,"
                "application/json",
                Form.OBJECT,
                id="aggregated discovery preferred, plain taken",
            ),
            pytest.param("image/png", None, id="another media type"),
            pytest.param(
                f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1", None, id="a Table in protobuf only"
            ),
            pytest.param("application/yaml", Form.OBJECT, id="YAML only"),
            pytest.param(
                "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
                Form.TABLE,
                id="an old Table only",
            ),
            pytest.param(
                "application/json;as=Table;v=v2;g=meta.k8s.io", None, id="an unknown Table only"
            ),
        ],
    )
    def test_the_accept_header_chooses_the_form_of_the_answer(self, accept, expected):
        if expected is None:
            with pytest.raises(StatusError, match="only the following media types are accepted"):
                negotiate(accept)
        else:
            assert negotiate(accept).form is expected

    @pytest.mark.parametrize(
        ("accept", "options", "expected"),
        [
            pytest.param(f"{PROTOBUF},application/json", {}, PROTOBUF, id="protobuf first"),
            pytest.param(f"application/json,{PROTOBUF}", {}, JSON, id="JSON first"),
            pytest.param(f"application/json;q=0.5,{PROTOBUF}", {}, PROTOBUF, id="by quality"),
            pytest.param(
                f"{PROTOBUF},application/json", {"protobuf": False}, JSON, id="a custom resource"
            ),
            pytest.param(PROTOBUF, {"protobuf": False}, None, id="a custom resource, no choice"),
            pytest.param(
                f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
                {"protobuf": False},
                PROTOBUF,
                id="metadata of a custom resource",
            ),
            pytest.param(f"{PROTOBUF};stream=watch", {"streamed": True}, PROTOBUF, id="a watch"),
            pytest.param("application/yaml", {"streamed": True}, None, id="a watch in YAML"),
            pytest.param("application/*", {}, JSON, id="anything"),
        ],
    )
    def test_the_accept_header_chooses_the_media_type(self, accept, options, expected):
        if expected is None:
            with pytest.raises(StatusError, match="only the following media types are accepted"):
                negotiate(accept, **options)
        else:
            assert negotiate(accept, **options) == Accepted(negotiate(accept).form, expected)

    async def test_an_accept_header_without_a_served_type_gets_406(self):
        found = await Cluster().call("GET", PODS, accept="image/png")
        assert found == failure(
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf",
        )
        found = await Cluster().call("GET", PODS, query={"watch": "1"}, accept="image/png")
        assert found == failure(
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json;stream=watch, "
            "application/vnd.kubernetes.protobuf;stream=watch",
        )

    async def test_a_list_is_served_as_a_table(self):
        cluster = await _with("a")
        found = await cluster.ok("GET", CONFIG_MAPS, accept=TABLE)
        assert found["kind"] == "Table"
        assert found["metadata"] == {"resourceVersion": str(cluster.server.store.version)}
        assert [column["name"] for column in found["columnDefinitions"]] == ["Name", "Data", "Age"]
        assert [row["cells"][0] for row in found["rows"]] == ["a"]
        assert found["rows"][0]["object"]["kind"] == "PartialObjectMetadata"

    async def test_one_object_is_served_as_a_table_with_the_whole_object(self):
        cluster = await _with("a")
        query = {"includeObject": "Object"}
        found = await cluster.ok("GET", f"{CONFIG_MAPS}/a", accept=TABLE, query=query)
        assert found["rows"][0]["object"] == await cluster.ok("GET", f"{CONFIG_MAPS}/a")

    async def test_a_table_with_an_unknown_include_object_is_refused(self):
        query = {"includeObject": "Half"}
        found = await Cluster().call("GET", PODS, accept=TABLE, query=query)
        assert found == failure(400, "BadRequest", 'unrecognized includeObject value: "Half"')

    async def test_a_list_is_served_as_metadata_only(self):
        cluster = await _with("a")
        accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
        found = await cluster.ok("GET", CONFIG_MAPS, accept=accept)
        whole = await cluster.ok("GET", f"{CONFIG_MAPS}/a")
        assert found == {
            "kind": "PartialObjectMetadataList",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {"resourceVersion": str(cluster.server.store.version)},
            "items": [
                {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": whole["metadata"],
                }
            ],
        }


async def test_a_table_of_the_old_version_says_so():
    cluster = Cluster()
    await cluster.ok("POST", CONFIG_MAPS, config_map())
    old = "application/json;as=Table;v=v1beta1;g=meta.k8s.io"
    table = await cluster.ok("GET", CONFIG_MAPS, accept=old)
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1beta1")
    assert {row["object"]["apiVersion"] for row in table["rows"]} == {"meta.k8s.io/v1beta1"}
