"""What a new cluster has for those who come with credentials."""

from __future__ import annotations

from moorage.apiserver.bootstrap import bootstrap
from tests.apiserver.harness import Cluster

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


async def test_a_server_without_credentials_creates_no_service():
    assert await Cluster().names(SERVICES) == []
