"""The objects of a new cluster.

Only objects that Kubernetes itself makes at its first start and that clients depend on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from moorage.base.certificates import Authority
from moorage.base.clock import SystemClock
from moorage.kinds.custom.shipped import SHIPPED, shipped_definitions
from moorage.kinds.kind import Obj
from moorage.kinds.network.addresses import (
    DEFAULT_SERVICE_CIDR,
    FIRST_ADDRESS,
    SERVICE_NETWORK,
)
from moorage.kinds.status import StatusError
from moorage_sandbox.apiserver.admission.namespaces import INITIAL
from moorage_sandbox.apiserver.custom.registration import api_service
from moorage_sandbox.apiserver.rbac.policy import (
    bootstrap_roles,
    controller_roles,
    issuer_discovery,
)
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.server import ApiServer
from moorage_sandbox.apiserver.wire.default_flows import default_flows

# The two classes of kubernetes v1.36 pkg/apis/scheduling/v1 (SystemPriorityClasses).
_SYSTEM_PRIORITY_CLASSES = (
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to "
        "another node if necessary.",
    ),
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
)

# Group -> its priority, from pkg/controlplane/apiserver/aggregator.go of kubernetes v1.36.
_PRIORITIES = {
    "": 18_000,
    "apps": 17_800,
    "events.k8s.io": 17_750,
    "authentication.k8s.io": 17_700,
    "authorization.k8s.io": 17_600,
    "autoscaling": 17_500,
    "batch": 17_400,
    "certificates.k8s.io": 17_300,
    "networking.k8s.io": 17_200,
    "policy": 17_100,
    "rbac.authorization.k8s.io": 17_000,
    "storage.k8s.io": 16_800,
    "admissionregistration.k8s.io": 16_700,
    "apiextensions.k8s.io": 16_700,
    "scheduling.k8s.io": 16_600,
    "coordination.k8s.io": 16_500,
    "node.k8s.io": 16_300,
    "discovery.k8s.io": 16_200,
    "flowcontrol.apiserver.k8s.io": 16_100,
    "internal.apiserver.k8s.io": 16_000,
    "resource.k8s.io": 15_900,
    "storagemigration.k8s.io": 15_800,
}


def bootstrap(
    server: ApiServer,
    *,
    authority_certificate: bytes = b"",
    custom_kinds: Collection[str] = SHIPPED,
) -> None:
    """Create the objects that every cluster has.

    Parameters
    ----------
    server
        A server without objects.
    authority_certificate
        Certificate of the authority that signs client certificates, PEM. Where it is given,
        components that check their own callers (a real kube-scheduler does) find it in its usual
        place. Clients also find the service of the API server.
    custom_kinds
        Plural names of the kinds of scheduler-plugins that the cluster has.
    """
    for obj in _all_objects(server, authority_certificate, custom_kinds):
        server.store_object(obj)


class Completed(NamedTuple):
    """The objects that `complete` made, and those that it could not make.

    Parameters
    ----------
    created
        Kind and name of each object made.
    refused
        Kind and name of each object that is still missing, with the reason.
    """

    created: list[str]
    refused: list[str]


def complete(
    server: ApiServer,
    *,
    authority_certificate: bytes = b"",
    custom_kinds: Collection[str] = SHIPPED,
) -> Completed:
    """Create the missing ones of the objects that every cluster has; the others stay as they are.

    Quotas and policies of the cluster may refuse an object. The cluster goes on without it.

    Parameters
    ----------
    server
        A server whose objects were read from a disk.
    authority_certificate, custom_kinds
        As of `bootstrap`.
    """
    created, refused = [], []
    for obj in _all_objects(server, authority_certificate, custom_kinds):
        if server.has(obj):
            continue
        name = f"{obj['kind']} {obj['metadata']['name']}"
        try:
            server.store_object(obj)
        except StatusError as error:
            refused.append(f"{name}: {error.message}")
        else:
            created.append(name)
    return Completed(created, refused)


def _all_objects(
    server: ApiServer, authority_certificate: bytes, custom_kinds: Collection[str]
) -> Iterator[Obj]:
    yield from (*initial_objects(), *bootstrap_roles(), *shipped_definitions(custom_kinds))
    if server.rbac:
        yield from controller_roles()
    if not authority_certificate:
        return
    authentication = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
    }
    if not server.has(authentication):
        # The authority of a front proxy is made for the first start only.
        data = {"client-ca-file": authority_certificate.decode(), **_front_proxy()}
        yield {**authentication, "data": data}
    yield {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": DEFAULT_SERVICE_CIDR},
        "spec": {"cidrs": [SERVICE_NETWORK]},
    }
    yield _own_service()
    yield from _own_api_services()
    yield from default_flows()
    yield from issuer_discovery()


def _front_proxy() -> dict[str, str]:
    """Return how a front proxy would name its users; there is none here.

    Programs that serve an API of their own do not start without these keys. The headers are those
    of kubeadm. The key of the authority is not kept, so that nobody can act as a proxy.
    """
    # A client checks a certificate with its own clock.
    authority = Authority(SystemClock(), name="front-proxy-ca")
    return {
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-client-ca-file": authority.certificate.decode(),
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-username-headers": '["X-Remote-User"]',
    }


def _own_service() -> Obj:
    """Return the service ``kubernetes``, the first that people see; nothing routes to it here.

    Notes
    -----
    kubernetes v1.36 pkg/controlplane/controller/kubernetesservice, addressed as kubeadm does.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": FIRST_ADDRESS,
            "ports": [{"name": "https", "port": 443}],
        },
    }


def _own_api_services() -> Iterator[Obj]:
    """Yield the APIServices of the built-in groups, which programs look at for what is served."""
    reviews = (("authentication.k8s.io", "v1"), ("authorization.k8s.io", "v1"))
    served = {(each.resource.group, each.resource.version) for each in served_kinds()}
    for group, version in sorted(served.union(reviews)):
        if group not in _PRIORITIES:
            continue
        stable = {"v1": 15 if group else 1, "v2": 30}
        of_version = stable.get(version, 12 if "beta" in version else 9)
        yield api_service(group, version, "onstart", (_PRIORITIES[group], of_version))


def initial_objects() -> Iterator[Obj]:
    """Yield the objects of a new cluster, in an order in which they can be created."""
    for name in INITIAL:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    for name, value, description in _SYSTEM_PRIORITY_CLASSES:
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": description,
        }
