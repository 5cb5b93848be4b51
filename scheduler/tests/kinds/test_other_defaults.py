"""Scope: what defaulting, admission and updates make of every kind that is not a pod."""

from __future__ import annotations

import copy

import pytest

from moorage.kinds.status import StatusError
from scheduler.tests.kinds.builders import (
    KINDS,
    World,
    claim,
    created,
    named,
    template,
    workload,
)

DEFAULT_CLASS = {"storageclass.kubernetes.io/is-default-class": "true"}
POD_SPEC = {
    "containers": [
        {
            "name": "main",
            "image": "app:1",
            "imagePullPolicy": "IfNotPresent",
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        }
    ],
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": POD_SPEC}
SELECTOR = {"matchLabels": {"app": "web"}}


@pytest.mark.parametrize(
    ("plural", "sent", "spec", "status"),
    [
        pytest.param(
            "deployments",
            {},
            {
                "replicas": 1,
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
                "selector": SELECTOR,
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
                },
                "template": TEMPLATE,
            },
            {},
            id="a deployment",
        ),
        pytest.param(
            "replicasets",
            {"replicas": 0},
            {"replicas": 0, "selector": SELECTOR, "template": TEMPLATE},
            {"replicas": 0},
            id="an empty replica set",
        ),
        pytest.param(
            "statefulsets",
            {},
            {
                "replicas": 1,
                "revisionHistoryLimit": 10,
                "podManagementPolicy": "OrderedReady",
                "serviceName": "",
                "selector": SELECTOR,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "persistentVolumeClaimRetentionPolicy": {
                    "whenDeleted": "Retain",
                    "whenScaled": "Retain",
                },
                "template": TEMPLATE,
            },
            {"replicas": 0, "availableReplicas": 0},
            id="a stateful set",
        ),
        pytest.param(
            "daemonsets",
            {},
            {
                "revisionHistoryLimit": 10,
                "selector": SELECTOR,
                "updateStrategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
                },
                "template": TEMPLATE,
            },
            {
                "currentNumberScheduled": 0,
                "desiredNumberScheduled": 0,
                "numberMisscheduled": 0,
                "numberReady": 0,
            },
            id="a daemon set",
        ),
    ],
)
def test_workloads_are_defaulted(plural, sent, spec, status):
    stored = created(plural, workload(plural, **sent))
    assert stored == named(plural, spec=spec, status=status) | {
        "metadata": {"name": "x", "namespace": "default", "generation": 1}
    }


def test_a_job_selects_its_pods_by_its_uid():
    sent = named("jobs", spec={"template": template(restartPolicy="Never")})
    sent["metadata"]["uid"] = "u1"
    labels = {
        "app": "web",
        "batch.kubernetes.io/controller-uid": "u1",
        "batch.kubernetes.io/job-name": "x",
        "controller-uid": "u1",
        "job-name": "x",
    }
    assert created("jobs", sent)["spec"] == {
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "completions": 1,
        "manualSelector": False,
        "parallelism": 1,
        "podReplacementPolicy": "TerminatingOrFailed",
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}},
        "suspend": False,
        "template": {
            "metadata": {"labels": labels},
            "spec": POD_SPEC | {"restartPolicy": "Never"},
        },
    }


def test_allocatable_of_a_node_defaults_to_its_capacity():
    sent = named("nodes", status={"capacity": {"cpu": 4, "memory": "8192Mi"}})
    stored = created("nodes", sent)
    assert stored["status"]["capacity"] == {"cpu": "4", "memory": "8Gi"}
    assert stored["status"]["allocatable"] == {"cpu": "4", "memory": "8Gi"}


def test_a_service_gets_a_cluster_ip_that_no_object_has():
    stored = created("services", named("services", spec={"ports": [{"port": 80}]}))
    address = stored["spec"].pop("clusterIP")
    assert address.startswith("10.96.")
    assert stored["spec"] == {
        "clusterIPs": [address],
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }
    other = created(
        "services",
        named("services", spec={"ports": [{"port": 80}]}),
        World(("ipaddresses", named("ipaddresses", address))),
    )
    assert other["spec"]["clusterIP"] != address


def test_a_service_gets_a_free_node_port():
    spec = {"type": "NodePort", "ports": [{"port": 80}, {"port": 81}]}
    ports = created("services", named("services", spec=spec))["spec"]["ports"]
    given = {port["nodePort"] for port in ports}
    assert len(given) == 2
    assert all(30_000 <= port < 32_768 for port in given)


def test_replacing_a_service_keeps_its_address_and_ports():
    sent = named("services", spec={"type": "NodePort", "ports": [{"port": 80}]})
    old = created("services", sent)
    new = copy.deepcopy(sent)
    KINDS["services"].default(new)
    KINDS["services"].prepare_update(new, old, subresource=None, ctx=World())
    assert new == old


def test_a_service_gets_node_ports_when_it_asks_for_them_later():
    old = created("services", named("services", spec={"ports": [{"port": 80}]}))
    new = named("services", spec={"type": "NodePort", "ports": [{"port": 80}]})
    KINDS["services"].default(new)
    KINDS["services"].prepare_update(new, old, subresource=None, ctx=World())
    assert new["spec"]["clusterIP"] == old["spec"]["clusterIP"]
    assert new["spec"]["ports"][0]["nodePort"] >= 30_000


def test_a_headless_service_stays_headless():
    stored = created("services", named("services", spec={"clusterIP": "None"}))
    assert stored["spec"]["clusterIPs"] == ["None"]


def test_a_namespace_carries_its_name_as_a_label():
    assert created("namespaces", named("namespaces", "team")) == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "team", "labels": {"kubernetes.io/metadata.name": "team"}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def test_plain_text_of_a_secret_is_encoded():
    stored = created("secrets", named("secrets", stringData={"user": "me"}))
    assert stored == named("secrets", data={"user": "bWU="}, type="Opaque")


def test_a_claim_takes_the_newest_default_class():
    classes = []
    for name, born in (("old", "2026-01-01T00:00:00Z"), ("new", "2026-02-01T00:00:00Z")):
        metadata = {"name": name, "creationTimestamp": born, "annotations": DEFAULT_CLASS}
        classes.append(("storageclasses", {"metadata": metadata}))
    world = World(*classes)
    assert created("persistentvolumeclaims", claim(), world)["spec"]["storageClassName"] == "new"
    chosen = claim(storageClassName="")
    assert created("persistentvolumeclaims", chosen, world)["spec"]["storageClassName"] == ""


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param({}, "default", id="no class"),
        pytest.param({"spec": {"ingressClassName": "own"}}, "own", id="a class of its own"),
        pytest.param(
            {"metadata": {"name": "x", "annotations": {"kubernetes.io/ingress.class": "own"}}},
            None,
            id="the annotation that was before the field",
        ),
    ],
)
def test_an_ingress_takes_the_default_class(sent, expected):
    annotations = {"ingressclass.kubernetes.io/is-default-class": "true"}
    found = {"metadata": {"name": "default", "annotations": annotations}}
    other = {"metadata": {"name": "another"}}
    world = World(("ingressclasses", found), ("ingressclasses", other))
    made = created("ingresses", named("ingresses") | sent, world)
    assert made["spec"].get("ingressClassName") == expected


def test_only_one_priority_class_is_the_default():
    world = World(("priorityclasses", named("priorityclasses", "first", globalDefault=True)))
    with pytest.raises(StatusError) as caught:
        created("priorityclasses", named("priorityclasses", globalDefault=True, value=1), world)
    assert caught.value.message == (
        'priorityclasses.scheduling.k8s.io "x" is forbidden: PriorityClass first is already '
        "marked as default. Only one default can exist"
    )


def test_a_change_of_the_spec_counts_as_a_generation_and_keeps_the_status():
    kind = KINDS["deployments"]
    old = created("deployments", workload("deployments"))
    old["status"] = {"replicas": 2}
    new = copy.deepcopy(old)
    new["spec"]["replicas"] = 5
    new["status"] = {"replicas": 99}
    kind.prepare_update(new, old, subresource=None, ctx=World())
    assert new["metadata"]["generation"] == 2
    assert new["status"] == {"replicas": 2}


def test_a_write_of_the_status_keeps_spec_and_labels():
    kind = KINDS["deployments"]
    old = created("deployments", workload("deployments"))
    new = copy.deepcopy(old)
    new["spec"]["replicas"] = 5
    new["metadata"]["labels"] = {"a": "b"}
    new["metadata"]["annotations"] = {"c": "d"}
    new["status"] = {"replicas": 1}
    kind.prepare_update(new, old, subresource="status", ctx=World())
    metadata = old["metadata"] | {"annotations": {"c": "d"}}
    assert new == old | {"metadata": metadata, "status": {"replicas": 1}}


@pytest.mark.parametrize("plural", sorted(KINDS))
def test_every_kind_can_be_created_shown_as_a_table_and_selected(plural):
    kind = KINDS[plural]
    stored = created(plural, named(plural))
    assert len(kind.row(stored, 0)) == len(kind.columns)
    fields = kind.selectable_fields(stored)
    assert fields.keys() == kind.selectable_fields({}).keys()
    assert fields["metadata.name"] == "x"


@pytest.mark.parametrize(
    ("plural", "kept"),
    [
        pytest.param("namespaces", {"labels", "annotations"}, id="a namespace takes both"),
        pytest.param("jobs", {"labels", "annotations"}, id="a job takes both"),
        pytest.param("deployments", {"annotations"}, id="a deployment keeps its labels"),
        pytest.param("volumeattachments", set(), id="an attachment keeps its metadata"),
        pytest.param("customresourcedefinitions", set(), id="a definition keeps its metadata"),
    ],
)
def test_a_write_of_the_status_takes_over_metadata_by_kind(plural, kept):
    kind = KINDS[plural]
    old = created(plural, named(plural))
    new = copy.deepcopy(old)
    sent = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    new["metadata"] |= sent
    kind.prepare_update(new, old, subresource="status", ctx=World())
    assert new["metadata"] == old["metadata"] | {key: sent[key] for key in sorted(kept)}


@pytest.mark.parametrize(
    ("plural", "finalizer"),
    [
        pytest.param("persistentvolumeclaims", "kubernetes.io/pvc-protection", id="a claim"),
        pytest.param("persistentvolumes", "kubernetes.io/pv-protection", id="a volume"),
    ],
)
def test_storage_is_protected_from_creation_on(plural, finalizer):
    new = named(plural, spec={})
    assert created(plural, new)["metadata"]["finalizers"] == [finalizer]
    new["metadata"]["finalizers"] = [finalizer, "a.b/c"]
    assert created(plural, new)["metadata"]["finalizers"] == [finalizer, "a.b/c"]
