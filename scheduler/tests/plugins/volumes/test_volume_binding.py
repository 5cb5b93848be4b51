"""Volume plugins beside Filter: rejections by PreFilter, and the assumptions of Reserve.

Filter is compared with the reference in test_against_reference; writing and waiting are
in sandbox/tests/controllers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from moorage.api.codec import from_dict
from moorage.api.volume import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import Status, error, unresolvable
from moorage.plugins.volumes.assumed import Assumed
from moorage.plugins.volumes.attached import AttachedVolumes
from moorage.plugins.volumes.claims import VolumeError
from moorage.plugins.volumes.nodes import reach_of
from moorage.plugins.volumes.resolver import VolumeResolver
from moorage.plugins.volumes.translation import handle_of, source_of, translated_affinity
from moorage.plugins.volumes.writes import with_node
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.plugins.builders import cluster, make, node, pod

COMPLETED = {"pv.kubernetes.io/bind-completed": "yes"}
SELECTED = "volume.kubernetes.io/selected-node"
ALL = ("VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits")


def claim(name: str = "c", *, phase: str = "", annotations=None, meta=None, **spec: Any):
    return from_dict(
        PersistentVolumeClaim,
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-{name}",
                "annotations": annotations or {},
                **(meta or {}),
            },
            "spec": {"resources": {"requests": {"storage": "1Gi"}}, **spec},
            "status": {"phase": phase},
        },
    )


def storage_class(name: str, mode: str | None = "WaitForFirstConsumer", **fields: Any):
    body = {"metadata": {"name": name}, "provisioner": "d.example", "volumeBindingMode": mode}
    return from_dict(StorageClass, {**body, **fields})


def volume(
    name: str, *, storage: str = "1Gi", labels: Mapping[str, str] | None = None, **spec: Any
) -> PersistentVolume:
    return from_dict(
        PersistentVolume,
        {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"capacity": {"storage": storage}, "storageClassName": "late", **spec},
            "status": {"phase": "Available"},
        },
    )


def using(*names: str, name: str = "p", ephemeral: bool = False) -> PodInfo:
    volumes = [
        {"name": each, "ephemeral": {}}
        if ephemeral
        else {"name": each, "persistentVolumeClaim": {"claimName": each}}
        for each in names
    ]
    return PodInfo(pod(name, volumes=volumes))


def with_objects(*objects: Any) -> Snapshot:
    snapshot = cluster(node("a"), node("b"))
    listers = snapshot.listers
    for obj in (storage_class("late"), storage_class("now", "Immediate"), *objects):
        by_type: dict[object, Any] = {
            PersistentVolumeClaim: listers.persistent_volume_claims,
            PersistentVolume: listers.persistent_volumes,
            StorageClass: listers.storage_classes,
            CSINode: listers.csi_nodes,
            CSIDriver: listers.csi_drivers,
        }
        by_type[type(obj)].put(obj)
    return snapshot


OWNED = {"ownerReferences": [{"kind": "Pod", "name": "p", "uid": "uid-other", "controller": True}]}
MISSING = 'persistentvolumeclaim "c" not found'


@pytest.mark.parametrize(
    ("objects", "asked", "expected"),
    [
        pytest.param(
            [],
            using("c"),
            {
                "VolumeBinding": unresolvable(MISSING),
                "VolumeZone": unresolvable(MISSING),
                "VolumeRestrictions": unresolvable(MISSING),
            },
            id="a claim that does not exist",
        ),
        pytest.param(
            [],
            using("v", ephemeral=True),
            {
                "VolumeBinding": unresolvable(
                    "waiting for ephemeral volume controller to create the "
                    'persistentvolumeclaim "p-v"'
                )
            },
            id="an ephemeral volume without its claim yet",
        ),
        pytest.param(
            [claim("p-v", meta=OWNED)],
            using("v", ephemeral=True),
            {
                "VolumeBinding": unresolvable(
                    "PVC default/p-v was not created for pod default/p (pod is not owner)"
                )
            },
            id="an ephemeral volume whose claim is another pod's",
        ),
        pytest.param(
            [claim(phase="Lost", volumeName="gone", annotations=COMPLETED)],
            using("c"),
            {
                "VolumeBinding": unresolvable(
                    'persistentvolumeclaim "c" bound to non-existent persistentvolume "gone"'
                ),
                "VolumeZone": unresolvable('persistentvolume "gone" not found'),
            },
            id="a claim that lost its volume",
        ),
        pytest.param(
            [
                claim(
                    storageClassName="late",
                    meta={"deletionTimestamp": "2026-01-01T00:00:00Z"},
                )
            ],
            using("c"),
            {"VolumeBinding": unresolvable('persistentvolumeclaim "c" is being deleted')},
            id="a claim that is being deleted",
        ),
        pytest.param(
            [claim()],
            using("c"),
            {
                "VolumeBinding": unresolvable("pod has unbound immediate PersistentVolumeClaims"),
                "VolumeZone": unresolvable(
                    "PersistentVolumeClaim had no pv name and storageClass name"
                ),
            },
            id="an unbound claim without a class",
        ),
        pytest.param(
            [claim(storageClassName="gone")],
            using("c"),
            {
                "VolumeBinding": unresolvable("pod has unbound immediate PersistentVolumeClaims"),
                "VolumeZone": unresolvable('storageclass.storage.k8s.io "gone" not found'),
            },
            id="a class that does not exist",
        ),
        pytest.param(
            [claim(storageClassName="now")],
            using("c"),
            {
                "VolumeBinding": unresolvable("pod has unbound immediate PersistentVolumeClaims"),
                "VolumeZone": unresolvable("PersistentVolume had no name"),
            },
            id="an immediate claim not bound yet",
        ),
        pytest.param(
            [storage_class("odd", None), claim(storageClassName="odd")],
            using("c"),
            {
                "VolumeBinding": error('VolumeBindingMode not set for StorageClass "odd"'),
                "VolumeZone": unresolvable('VolumeBindingMode not set for StorageClass "odd"'),
            },
            id="a class without volumeBindingMode",
        ),
        pytest.param(
            [claim(storageClassName="late", volumeName="pv"), volume("pv")],
            using("c"),
            {"VolumeBinding": unresolvable("pod has unbound immediate PersistentVolumeClaims")},
            id="a claim that names its volume but is not bound",
        ),
        pytest.param(
            [claim(storageClassName="late")], using("c"), {}, id="a claim that waits for a pod"
        ),
    ],
)
def test_pre_filter_rejects(objects, asked, expected):
    snapshot = with_objects(*objects)
    found: dict[str, Status] = {}
    for name in ALL:
        plugin, _ = make(name, snapshot)
        _, status = plugin.pre_filter(CycleState(), asked, snapshot)
        if status.reasons:
            found[name] = status
    assert found == expected


def find(plugin: Any, snapshot: Snapshot, asked: PodInfo) -> tuple[CycleState, list[bool]]:
    state = CycleState()
    _, status = plugin.pre_filter(state, asked, snapshot)
    assert status.ok, status
    answer = plugin.filter(state, asked, snapshot.all())
    return state, [True, True] if answer is None else (answer.code_n == 0).tolist()


def local(name: str, node_name: str) -> PersistentVolume:
    term = {"matchExpressions": [{"key": "name", "operator": "In", "values": [node_name]}]}
    return volume(name, nodeAffinity={"required": {"nodeSelectorTerms": [term]}})


def test_an_assumed_volume_is_not_free_until_unreserve():
    late = storage_class("late", provisioner="kubernetes.io/no-provisioner")
    claims = [claim("c", storageClassName="late"), claim("d", storageClassName="late")]
    snapshot = with_objects(late, *claims, local("pv-a", "a"), local("pv-b", "b"))
    for name in ("a", "b"):
        snapshot.table.add_node(node(name, labels={"name": name}))
    plugin, _ = make("VolumeBinding", snapshot)
    first, second = using("c", name="p"), using("d", name="q")
    state, fits = find(plugin, snapshot, first)
    assert fits == [True, True]
    assert plugin.reserve(state, first, "a").ok
    assert plugin.pre_bind_pre_flight(state, first, "a").ok
    assert find(plugin, snapshot, second)[1] == [False, True]
    # Another pod with the same claim finds its volume reserved, and undoes nothing but its own.
    third = using("c", name="r")
    shared, fits = find(plugin, snapshot, third)
    assert fits == [True, False]
    assert plugin.reserve(shared, third, "a").ok
    plugin.unreserve(shared, third, "a")
    assert find(plugin, snapshot, second)[1] == [False, True]
    plugin.unreserve(state, first, "a")
    plugin.unreserve(state, first, "a")
    assert find(plugin, snapshot, second)[1] == [True, True]


def test_failures_are_counted_by_step():
    late = storage_class("late", provisioner="kubernetes.io/no-provisioner")
    pv = volume("pv", storageClassName="late")
    snapshot = with_objects(late, claim("c", storageClassName="late"), pv)
    plugin, _ = make("VolumeBinding", snapshot)
    asked = using("c", name="p")
    state, _ = find(plugin, snapshot, asked)
    newer = msgspec.structs.replace(pv.metadata, resource_version="9")
    snapshot.listers.persistent_volumes.put(msgspec.structs.replace(pv, metadata=newer))
    assert not plugin.reserve(state, asked, "a").ok
    state = CycleState()
    assert plugin.pre_filter(state, asked, snapshot)[1].ok
    snapshot.listers.persistent_volumes.remove(pv)
    snapshot.listers.storage_classes.remove(late)
    with pytest.raises(VolumeError, match="failed to find storage class"):
        plugin.filter(state, asked, snapshot.all())
    assert plugin.stage_errors == {("assume",): 1, ("predicate",): 1}


def test_two_claims_of_a_pod_need_two_volumes():
    late = storage_class("late", provisioner="kubernetes.io/no-provisioner")
    claims = [claim("c", storageClassName="late"), claim("d", storageClassName="late")]
    snapshot = with_objects(late, *claims, volume("one"))
    plugin, _ = make("VolumeBinding", snapshot)
    asked = using("c", "d")
    assert find(plugin, snapshot, asked)[1] == [False, False]
    snapshot.listers.persistent_volumes.put(volume("two", storage="2Gi"))
    assert find(plugin, snapshot, asked)[1] == [True, True]


def test_a_claim_to_provision_restricts_later_pods_to_its_node_until_it_changes():
    snapshot = with_objects(claim(storageClassName="late"))
    plugin, _ = make("VolumeBinding", snapshot)
    state, fits = find(plugin, snapshot, using("c"))
    assert fits == [True, True]
    assert plugin.reserve(state, using("c"), "b").ok
    assert find(plugin, snapshot, using("c", name="q"))[1] == [False, True]
    snapshot.listers.persistent_volume_claims.put(
        claim(storageClassName="late", meta={"resourceVersion": "2"})
    )
    assert find(plugin, snapshot, using("c", name="q"))[1] == [True, True]


def test_assumptions_overtaken_by_the_api_are_dropped():
    names = [f"c{index}" for index in range(5)]
    snapshot = with_objects(*[claim(name, storageClassName="late") for name in names])
    claims = snapshot.listers.persistent_volume_claims
    assumed = Assumed(claims)
    for name in names:
        shown = claims.get(name, "default")
        assert shown is not None
        assumed.assume(with_node(shown, "a"))
        assert set(assumed._overlay) == {("default", name)}
        claims.put(claim(name, storageClassName="late", meta={"resourceVersion": "2"}))


def test_volumes_and_nodes_that_are_gone_leave_nothing_behind():
    csi = {"driver": "d.example", "volumeHandle": "h"}
    bound = claim(storageClassName="late", volumeName="pv")
    snapshot = with_objects(bound, volume("pv", csi=csi))
    resolver = VolumeResolver(snapshot.listers, "prefix")
    attached = AttachedVolumes(snapshot, resolver)
    snapshot.table.add_pod(using("c"), "a")
    attached.follow()
    assert attached.used("d.example").tolist() == [1, 0]
    assert (set(resolver.claims_of_volume), set(attached._nodes)) == ({"pv"}, {"a"})
    snapshot.listers.persistent_volumes.put(volume("pv", csi=csi, storage="2Gi"))
    attached.follow()
    assert set(resolver.claims_of_volume) == {"pv"}
    snapshot.table.remove_pod("uid-p")
    attached.follow()
    assert attached.used("d.example").tolist() == [0, 0]
    snapshot.listers.persistent_volume_claims.remove(bound)
    snapshot.listers.persistent_volumes.remove(volume("pv"))
    attached.follow()
    assert (resolver.claims_of_volume, attached._nodes) == ({}, {})


def test_a_decision_from_an_older_version_is_an_error_and_assumes_nothing():
    snapshot = with_objects(claim("c", storageClassName="late"))
    plugin, _ = make("VolumeBinding", snapshot)
    state, _ = find(plugin, snapshot, using("c"))
    snapshot.listers.persistent_volume_claims.put(
        claim(storageClassName="late", meta={"resourceVersion": "2"})
    )
    status = plugin.reserve(state, using("c"), "b")
    assert status == error('"default/c" has changed since the decision')
    assert find(plugin, snapshot, using("c"))[1] == [True, True]


def test_a_trial_can_remove_a_pod_that_uses_a_one_pod_claim():
    one_pod = claim("c", accessModes=["ReadWriteOncePod"])
    snapshot = with_objects(one_pod)
    holder, asked = using("c", name="holder"), using("c", name="asked")
    snapshot.table.add_pod(holder, "a")
    plugin, _ = make("VolumeRestrictions", snapshot)
    state = CycleState()
    assert plugin.pre_filter(state, asked, snapshot)[1].ok
    before = plugin.filter(state, asked, snapshot.all())
    assert before.code_n.tolist() == [2, 2]
    changed = state.copy()
    with snapshot.trial() as trial:
        trial.remove_pod(holder.uid)
        plugin.remove_pod(changed, asked, holder, row=0)
        assert plugin.filter(changed, asked, snapshot.all()) is None
        plugin.add_pod(changed, asked, holder, row=0)
        assert plugin.filter(changed, asked, snapshot.all()).code_n.tolist() == [2, 2]
    assert plugin.filter(state, asked, snapshot.all()).code_n.tolist() == [2, 2]


ZONE = "topology.kubernetes.io/zone"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
CINDER_ZONE = "topology.cinder.csi.openstack.org/zone"


@pytest.mark.parametrize(
    ("source", "labels", "handle"),
    [
        pytest.param({"awsElasticBlockStore": {"volumeID": "vol-1"}}, {}, "vol-1", id="bare EBS"),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws://us-1a/vol-1"}}, {}, "vol-1", id="EBS URL"
        ),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d"}},
            {ZONE: "us-central1-a"},
            "projects/UNSPECIFIED/zones/us-central1-a/disks/d",
            id="a disk of a zone",
        ),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d"}},
            {ZONE: "us-central1-a__us-central1-b"},
            "projects/UNSPECIFIED/regions/us-central1/disks/d",
            id="a disk of a region",
        ),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d"}},
            {ZONE: "new", BETA_ZONE: "old"},
            "projects/UNSPECIFIED/zones/old/disks/d",
            id="the older label of a zone comes first",
        ),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d"}},
            {},
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
            id="a disk of an unknown zone",
        ),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws:///vol-1/"}}, {}, "vol-1", id="no zone"
        ),
        pytest.param({"azureDisk": {"diskURI": "/x/y"}}, {}, "/x/y", id="Azure"),
        pytest.param({"cinder": {"volumeID": "u"}}, {}, "u", id="Cinder"),
        pytest.param({"portworxVolume": {"volumeID": "w"}}, {}, "w", id="Portworx"),
    ],
)
def test_in_tree_handles(source, labels, handle):
    found = source_of(volume("pv", **source))
    assert found is not None
    assert handle_of(found[1], labels) == handle


@pytest.mark.parametrize(
    ("source", "labels", "text"),
    [
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws://z/disk"}},
            {},
            "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume "
            "(aws://z/disk)",
            id="an id that is no EBS volume",
        ),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d"}},
            {ZONE: "r-a__r-b"},
            "failed to get region from zones: zone in unexpected format, expected: "
            "{locale}-{region}-{zone}, got: r-a",
            id="zones of another form",
        ),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d"}},
            {ZONE: "us-west1-a__us-east1-b"},
            "failed to get region from zones: multiple or no regions gotten from zones, got: "
            "map[us-east1:{} us-west1:{}]",
            id="zones of two regions",
        ),
    ],
)
def test_untranslatable_handles_fail_with_the_upstream_text(source, labels, text):
    found = source_of(volume("pv", **source))
    assert found is not None
    with pytest.raises(VolumeError) as caught:
        handle_of(found[1], labels)
    assert str(caught.value) == text
    migrated = frozenset({found[0]})
    disk = volume("pv", labels=labels, **source)
    with pytest.raises(VolumeError) as caught:
        reach_of(disk).reaches_node({}, migrated)
    assert str(caught.value) == f"could not translate pv: {text}"


def expressions(**wanted: list[str] | None) -> dict[str, Any]:
    """Return a node affinity of one term; None asks for any value."""
    keys = {"zone": ZONE, "beta": BETA_ZONE, "region": REGION, "beta_region": BETA_REGION}
    items = [
        {"key": keys[name], "operator": "Exists"}
        if values is None
        else {"key": keys[name], "operator": "In", "values": values}
        for name, values in wanted.items()
    ]
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": items}]}}


@pytest.mark.parametrize(
    ("labels", "affinity", "expected"),
    [
        pytest.param({}, None, None, id="no affinity and no labels: every node"),
        pytest.param(
            {ZONE: "a__b"},
            None,
            [(CINDER_ZONE, ["a", "b"])],
            id="zone labels become required topology",
        ),
        pytest.param(
            {ZONE: " b __a__ __a"},
            None,
            [(CINDER_ZONE, ["a", "b"])],
            id="zones are unique, sorted, stripped and not empty",
        ),
        pytest.param({ZONE: "__"}, None, None, id="a label without a zone adds nothing"),
        pytest.param(
            {BETA_ZONE: "a"}, None, [(CINDER_ZONE, ["a"])], id="only the older zone label"
        ),
        pytest.param(
            {ZONE: "new"},
            expressions(beta=["old"], beta_region=["r"]),
            [(CINDER_ZONE, ["old"]), (REGION, ["r"])],
            id="affinity replaces labels, and region keys are translated",
        ),
        pytest.param(
            {BETA_ZONE: "old"},
            expressions(zone=["new"], beta_region=["r"]),
            [(CINDER_ZONE, ["new"]), (BETA_REGION, ["r"])],
            id="region keys stay when the zone label is the newer one",
        ),
        pytest.param(
            {ZONE: "a"},
            expressions(zone=None),
            [(ZONE, []), (CINDER_ZONE, ["a"])],
            id="an Exists requirement on the zone names no zone",
        ),
    ],
)
def test_affinity_of_a_migrated_volume_from_affinity_or_labels(labels, affinity, expected):
    more = {} if affinity is None else {"nodeAffinity": affinity}
    disk = volume("pv", labels=labels, cinder={"volumeID": "u"}, **more)
    found = translated_affinity(disk, "kubernetes.io/cinder")
    if found is None:
        assert expected is None
        return
    (term,) = found.node_selector_terms
    assert [(item.key, item.values) for item in term.match_expressions] == expected


def test_a_volume_with_no_topology_of_its_driver_keeps_its_affinity():
    disk = volume("pv", azureDisk={"diskURI": "/x"}, nodeAffinity=expressions(beta=["a"]))
    assert disk.spec.node_affinity is not None
    found = translated_affinity(disk, "kubernetes.io/azure-disk")
    assert found == disk.spec.node_affinity.required


def test_a_migrated_volume_requires_the_topology_keys_of_its_driver():
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z"]}]}
    disk = volume(
        "pv",
        gcePersistentDisk={"pdName": "d"},
        nodeAffinity={"required": {"nodeSelectorTerms": [term]}},
    )
    reach = reach_of(disk)
    old, new = {ZONE: "z"}, {"topology.gke.io/zone": "z"}
    moved = frozenset({"kubernetes.io/gce-pd"})
    assert [reach.reaches_node(old, frozenset()), reach.reaches_node(new, frozenset())] == [
        True,
        False,
    ]
    assert [reach.reaches_node(old, moved), reach.reaches_node(new, moved)] == [False, True]
    listed = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd,other"}
    csi_node = from_dict(CSINode, {"metadata": {"name": "b", "annotations": listed}})
    bound = claim("c", volumeName="pv", annotations=COMPLETED)
    snapshot = with_objects(disk, bound, csi_node)
    for name in ("a", "b"):
        snapshot.table.add_node(node(name, labels=old))
    plugin, _ = make("VolumeBinding", snapshot)
    assert find(plugin, snapshot, using("c"))[1] == [True, False]


def test_an_untranslatable_volume_raises_only_when_a_node_migrates_its_plugin():
    disk = volume("pv", awsElasticBlockStore={"volumeID": "aws://z/disk"})
    bound = claim("c", volumeName="pv", annotations=COMPLETED)
    snapshot = with_objects(disk, bound)
    plugin, _ = make("VolumeBinding", snapshot)
    assert find(plugin, snapshot, using("c"))[1] == [True, True]
    listed = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
    snapshot.listers.csi_nodes.put(
        from_dict(CSINode, {"metadata": {"name": "b", "annotations": listed}})
    )
    with pytest.raises(VolumeError, match="EBS Volume ID Invalid format for AWS volume"):
        find(plugin, snapshot, using("c"))


def test_attach_limits_skip_untranslatable_volumes_but_not_inline_volumes():
    disk = volume("pv", awsElasticBlockStore={"volumeID": "aws://z/disk"})
    snapshot = with_objects(disk, claim("c", volumeName="pv", annotations=COMPLETED))
    resolver = VolumeResolver(snapshot.listers, "prefix")
    assert resolver.resolve(using("c"), has_csi_node=True, skip_missing=False) == {}
    inline = {"name": "data", "awsElasticBlockStore": {"volumeID": "aws://z/disk"}}
    asked = PodInfo(pod("p", volumes=[inline]))
    with pytest.raises(VolumeError, match=r"^converting volume\(data\) from inline to csi: failed"):
        resolver.resolve(asked, has_csi_node=True, skip_missing=False)
    assert resolver.resolve(asked, has_csi_node=False, skip_missing=False) == {}
