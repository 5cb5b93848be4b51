"""What a new cluster has for those who come with credentials."""

from __future__ import annotations

import pytest

from moorage_sandbox.apiserver.bootstrap import bootstrap, complete
from sandbox.tests.apiserver.harness import Cluster

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SERVICES = "/api/v1/namespaces/default/services"


async def test_the_api_server_has_its_service_and_the_first_address():
    cluster = Cluster(bootstrapped=False)
    bootstrap(cluster.server, authority_certificate=b"PEM")
    found = await cluster.ok("GET", f"{SERVICES}/kubernetes")
    assert found["metadata"]["labels"] == {"component": "apiserver", "provider": "kubernetes"}
    assert found["spec"] == {
        "clusterIP": "10.96.0.1",
        "clusterIPs": ["10.96.0.1"],
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 443}],
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }


async def test_programs_with_an_api_of_their_own_read_how_a_front_proxy_would_speak():
    cluster = Cluster(bootstrapped=False)
    bootstrap(cluster.server, authority_certificate=b"PEM")
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    data = (await cluster.ok("GET", path))["data"]
    authority = data.pop("requestheader-client-ca-file")
    assert authority.startswith("-----BEGIN CERTIFICATE-----")
    assert data == {
        "client-ca-file": "PEM",
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-username-headers": '["X-Remote-User"]',
    }


async def test_the_range_of_the_services_addresses_is_ready():
    cluster = Cluster(bootstrapped=False)
    bootstrap(cluster.server, authority_certificate=b"PEM")
    path = "/apis/networking.k8s.io/v1/servicecidrs"
    found = await cluster.ok("GET", f"{path}/kubernetes")
    assert found["spec"] == {"cidrs": ["10.96.0.0/16"]}
    (told,) = found["status"]["conditions"]
    assert (told["type"], told["status"]) == ("Ready", "True")


async def test_every_served_group_has_an_api_service_that_is_available():
    cluster = Cluster(bootstrapped=False)
    bootstrap(cluster.server, authority_certificate=b"PEM")
    found = await cluster.ok("GET", "/apis/apiregistration.k8s.io/v1/apiservices")
    for each in found["items"]:
        custom = each["spec"]["group"] == "scheduling.x-k8s.io"
        told = "true" if custom else "onstart"
        assert each["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": told}
        (told,) = each["status"]["conditions"]
        assert (told["type"], told["status"], told["reason"]) == ("Available", "True", "Local")
    groups = await cluster.ok("GET", "/apis")
    served = {
        ".".join(reversed(version["groupVersion"].split("/")))
        for group in groups["groups"]
        for version in group["versions"]
    }
    # Computed metrics and the group of the APIServices themselves have none.
    without = {
        "v1.apiregistration.k8s.io",
        "v1beta1.metrics.k8s.io",
    }
    names = {each["metadata"]["name"] for each in found["items"]}
    assert names == served - without | {"v1."}


async def test_a_server_without_credentials_creates_no_service():
    assert await Cluster().names(SERVICES) == []


@pytest.mark.parametrize(
    ("kinds", "names"),
    [
        ((), []),
        (("podgroups",), ["podgroups.scheduling.x-k8s.io"]),
        (("elasticquotas",), ["elasticquotas.scheduling.x-k8s.io"]),
    ],
)
async def test_a_cluster_has_the_kinds_of_scheduler_plugins_that_its_scheduler_needs(kinds, names):
    cluster = Cluster(bootstrapped=False)
    bootstrap(cluster.server, custom_kinds=kinds)
    assert await cluster.names(DEFINITIONS) == names


async def test_a_kind_that_a_later_configuration_needs_is_made_at_the_next_start():
    cluster = Cluster(bootstrapped=False)
    bootstrap(cluster.server, custom_kinds=())
    completion = complete(cluster.server, custom_kinds=("podgroups",))
    assert completion.created == ["CustomResourceDefinition podgroups.scheduling.x-k8s.io"]
    assert await cluster.names(DEFINITIONS) == ["podgroups.scheduling.x-k8s.io"]
