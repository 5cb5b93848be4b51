"""The table of resource types and the paths made from it."""

import pytest

from moorage.api import resources as r


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(r.resource_path(r.PODS), "/api/v1/pods", id="all pods"),
        pytest.param(r.resource_path(r.PODS, "ns"), "/api/v1/namespaces/ns/pods", id="a namespace"),
        pytest.param(
            r.resource_path(r.PODS, "ns", "a", "binding"),
            "/api/v1/namespaces/ns/pods/a/binding",
            id="a subresource",
        ),
        pytest.param(
            r.resource_path(r.NODES, "ns", "n1"), "/api/v1/nodes/n1", id="nodes have no namespace"
        ),
        pytest.param(
            r.resource_path(r.LEASES, "kube-system", "x"),
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x",
            id="a named group",
        ),
        pytest.param(
            r.resource_path(r.PODS, "a/b", "x?y"),
            "/api/v1/namespaces/a%2Fb/pods/x%3Fy",
            id="odd characters are encoded",
        ),
    ],
)
def test_the_url_path_of_a_resource(path, expected):
    assert path == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("pods", r.PODS, id="plural"),
        pytest.param("pod", r.PODS, id="singular"),
        pytest.param("Pod", r.PODS, id="kind"),
        pytest.param("po", r.PODS, id="short name"),
        pytest.param("events", r.CORE_EVENTS, id="core comes first"),
        pytest.param("events.events.k8s.io", r.EVENTS, id="plural and group"),
        pytest.param("deployments.v1.apps", r.DEPLOYMENTS, id="plural, version and group"),
        pytest.param("deployment.apps", r.DEPLOYMENTS, id="singular and group"),
        pytest.param("hpa", r.HORIZONTAL_POD_AUTOSCALERS, id="the preferred version comes first"),
        pytest.param(
            "hpa.v1.autoscaling", r.HORIZONTAL_POD_AUTOSCALERS_V1, id="short name, version, group"
        ),
        pytest.param(
            "horizontalpodautoscalers.v1.autoscaling",
            r.HORIZONTAL_POD_AUTOSCALERS_V1,
            id="a version that is not preferred",
        ),
        pytest.param("deployments.batch", None, id="another group"),
        pytest.param("widgets", None, id="unknown"),
    ],
)
def test_a_resource_is_found_by_kind_plural_or_short_name(name, expected):
    assert r.by_name(name) is expected


def test_every_type_is_found_by_kind_and_plural():
    for rt in r.RESOURCES:
        assert r.by_kind(rt.kind, rt.api_version) is rt
    assert [rt for rt in r.RESOURCES if r.by_plural(rt.plural, rt.group) is not rt] == [
        r.HORIZONTAL_POD_AUTOSCALERS_V1
    ]
    assert r.by_kind("Event") is r.CORE_EVENTS
    assert r.by_plural("events") is r.CORE_EVENTS
    assert r.by_kind("Pod", "apps/v1") is None
    assert r.by_plural("pods", "apps") is None


PROMISED = [
    "v1 pods Pod True",
    "v1 nodes Node False",
    "v1 namespaces Namespace False",
    "v1 services Service True",
    "v1 replicationcontrollers ReplicationController True",
    "v1 persistentvolumes PersistentVolume False",
    "v1 persistentvolumeclaims PersistentVolumeClaim True",
    "v1 configmaps ConfigMap True",
    "v1 secrets Secret True",
    "v1 serviceaccounts ServiceAccount True",
    "v1 events Event True",
    "v1 resourcequotas ResourceQuota True",
    "v1 limitranges LimitRange True",
    "v1 endpoints Endpoints True",
    "apps/v1 deployments.apps Deployment True",
    "apps/v1 replicasets.apps ReplicaSet True",
    "apps/v1 statefulsets.apps StatefulSet True",
    "apps/v1 daemonsets.apps DaemonSet True",
    "apps/v1 controllerrevisions.apps ControllerRevision True",
    "batch/v1 jobs.batch Job True",
    "batch/v1 cronjobs.batch CronJob True",
    "autoscaling/v2 horizontalpodautoscalers.autoscaling HorizontalPodAutoscaler True",
    "autoscaling/v1 horizontalpodautoscalers.autoscaling HorizontalPodAutoscaler True",
    "networking.k8s.io/v1 ingresses.networking.k8s.io Ingress True",
    "networking.k8s.io/v1 ingressclasses.networking.k8s.io IngressClass False",
    "networking.k8s.io/v1 networkpolicies.networking.k8s.io NetworkPolicy True",
    "discovery.k8s.io/v1 endpointslices.discovery.k8s.io EndpointSlice True",
    "policy/v1 poddisruptionbudgets.policy PodDisruptionBudget True",
    "scheduling.k8s.io/v1 priorityclasses.scheduling.k8s.io PriorityClass False",
    "scheduling.k8s.io/v1alpha2 podgroups.scheduling.k8s.io PodGroup True",
    "scheduling.k8s.io/v1alpha2 workloads.scheduling.k8s.io Workload True",
    "storage.k8s.io/v1 storageclasses.storage.k8s.io StorageClass False",
    "storage.k8s.io/v1 csinodes.storage.k8s.io CSINode False",
    "storage.k8s.io/v1 csidrivers.storage.k8s.io CSIDriver False",
    "storage.k8s.io/v1 csistoragecapacities.storage.k8s.io CSIStorageCapacity True",
    "storage.k8s.io/v1 volumeattachments.storage.k8s.io VolumeAttachment False",
    "resource.k8s.io/v1 deviceclasses.resource.k8s.io DeviceClass False",
    "resource.k8s.io/v1 resourceslices.resource.k8s.io ResourceSlice False",
    "resource.k8s.io/v1 resourceclaims.resource.k8s.io ResourceClaim True",
    "resource.k8s.io/v1 resourceclaimtemplates.resource.k8s.io ResourceClaimTemplate True",
    "coordination.k8s.io/v1 leases.coordination.k8s.io Lease True",
    "events.k8s.io/v1 events.events.k8s.io Event True",
    "rbac.authorization.k8s.io/v1 roles.rbac.authorization.k8s.io Role True",
    "rbac.authorization.k8s.io/v1 rolebindings.rbac.authorization.k8s.io RoleBinding True",
    "rbac.authorization.k8s.io/v1 clusterroles.rbac.authorization.k8s.io ClusterRole False",
    "rbac.authorization.k8s.io/v1 clusterrolebindings.rbac.authorization.k8s.io "
    "ClusterRoleBinding False",
    "apiextensions.k8s.io/v1 customresourcedefinitions.apiextensions.k8s.io "
    "CustomResourceDefinition False",
    "admissionregistration.k8s.io/v1 "
    "validatingwebhookconfigurations.admissionregistration.k8s.io "
    "ValidatingWebhookConfiguration False",
    "admissionregistration.k8s.io/v1 "
    "validatingadmissionpolicies.admissionregistration.k8s.io "
    "ValidatingAdmissionPolicy False",
    "admissionregistration.k8s.io/v1 "
    "validatingadmissionpolicybindings.admissionregistration.k8s.io "
    "ValidatingAdmissionPolicyBinding False",
    "admissionregistration.k8s.io/v1 "
    "mutatingadmissionpolicies.admissionregistration.k8s.io "
    "MutatingAdmissionPolicy False",
    "admissionregistration.k8s.io/v1 "
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io "
    "MutatingAdmissionPolicyBinding False",
    "admissionregistration.k8s.io/v1 "
    "mutatingwebhookconfigurations.admissionregistration.k8s.io "
    "MutatingWebhookConfiguration False",
    "apiregistration.k8s.io/v1 apiservices.apiregistration.k8s.io APIService False",
]


def test_types_are_the_ones_promised():
    found = [f"{rt.api_version} {rt.qualified} {rt.kind} {rt.namespaced}" for rt in r.RESOURCES]
    assert found == PROMISED
