"""Decoding and encoding: round trips, leniency, strictness, and the text of errors."""

import json
import sys

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.api import codec, devices, event, lease, node, pod, policy, volume, workloads
from moorage.api.meta import Condition, ObjectMeta, PartialObject
from moorage.api.node import Node, NodeSpec, NodeStatus, Taint
from moorage.api.pod import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    Pod,
    PodSpec,
    PodStatus,
    Resources,
)
from moorage.base.errors import DecodeError

KINDS = [
    pod.Pod,
    node.Node,
    workloads.Namespace,
    workloads.Service,
    workloads.ReplicationController,
    workloads.ReplicaSet,
    workloads.StatefulSet,
    policy.PodDisruptionBudget,
    policy.PriorityClass,
    volume.PersistentVolume,
    volume.PersistentVolumeClaim,
    volume.StorageClass,
    volume.CSINode,
    volume.CSIDriver,
    volume.CSIStorageCapacity,
    volume.VolumeAttachment,
    lease.Lease,
    event.Event,
    event.CoreEvent,
    devices.ResourceClaim,
    devices.ResourceClaimTemplate,
    devices.ResourceSlice,
    devices.DeviceClass,
]

WORDS = st.sampled_from(["", "a", "500m", "example.com/x", "2024-01-01T00:00:00Z"])


def _values(kind) -> st.SearchStrategy:
    """Values of a msgspec type description, few and small."""
    info = msgspec.inspect
    if isinstance(kind, info.StructType):
        return _structs(kind)
    if isinstance(kind, info.ListType):
        return st.lists(_values(kind.item_type), max_size=1)
    if isinstance(kind, info.DictType):
        return st.dictionaries(WORDS, _values(kind.value_type), max_size=1)
    if isinstance(kind, info.UnionType):
        return st.one_of(*[_values(member) for member in kind.types])
    simple: dict[type, st.SearchStrategy] = {
        info.NoneType: st.none(),
        info.StrType: WORDS,
        info.IntType: st.integers(-(2**31), 2**31 - 1),
        info.FloatType: st.sampled_from([0.5, 1.5]),
        info.BoolType: st.booleans(),
        info.CustomType: WORDS,  # object: passed on unread
    }
    return simple[type(kind)]


def _structs(kind: msgspec.inspect.StructType) -> st.SearchStrategy:
    @st.composite
    def build(draw):
        chosen = draw(st.lists(st.sampled_from(kind.fields), max_size=4, unique_by=id))
        return kind.cls(**{field.name: draw(_values(field.type)) for field in chosen})

    return build()


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.__name__) for kind in KINDS])
def test_an_object_survives_the_round_trip(kind, data):
    described = msgspec.inspect.type_info(kind)
    assert isinstance(described, msgspec.inspect.StructType)
    obj = data.draw(_structs(described))
    assert codec.decode(kind, codec.encode(obj)) == obj
    assert codec.from_dict(kind, codec.to_dict(obj)) == obj


WEB = Pod(
    api_version="v1",
    kind="Pod",
    metadata=ObjectMeta(name="web", namespace="default", uid="u1", labels={"app": "web"}),
    spec=PodSpec(
        containers=[
            Container(
                name="c",
                image="nginx:1",
                ports=[ContainerPort(host_port=80, container_port=80, host_ip="10.0.0.1")],
                resources=Resources(requests={"cpu": "500m", "memory": 1024}),
            )
        ],
        affinity=Affinity(node_affinity=NodeAffinity()),
        node_selector={},
        priority=0,
    ),
    status=PodStatus(
        pod_ip="10.1.0.1",
        host_ip="10.0.0.1",
        qos_class="Burstable",
        conditions=[Condition(type="PodScheduled", status="True")],
    ),
)
WEB_JSON = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web",
        "namespace": "default",
        "uid": "u1",
        "labels": {"app": "web"},
    },
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "nginx:1",
                "ports": [{"hostPort": 80, "containerPort": 80, "hostIP": "10.0.0.1"}],
                "resources": {"requests": {"cpu": "500m", "memory": 1024}},
            }
        ],
        "nodeSelector": {},
        "affinity": {"nodeAffinity": {}},
        "priority": 0,
    },
    "status": {
        "conditions": [{"type": "PodScheduled", "status": "True"}],
        "hostIP": "10.0.0.1",
        "podIP": "10.1.0.1",
        "qosClass": "Burstable",
    },
}
TAINTED = Node(
    metadata=ObjectMeta(name="n1"),
    spec=NodeSpec(pod_cidr="10.0.0.0/24", provider_id="x://1", taints=[Taint(key="k")]),
    status=NodeStatus(allocatable={"pods": "110"}, declared_features=["F"]),
)
TAINTED_JSON = {
    "metadata": {"name": "n1"},
    "spec": {"podCIDR": "10.0.0.0/24", "providerID": "x://1", "taints": [{"key": "k"}]},
    "status": {"allocatable": {"pods": "110"}, "declaredFeatures": ["F"]},
}


@pytest.mark.parametrize(
    ("obj", "written"),
    [
        pytest.param(WEB, WEB_JSON, id="a pod, with what is empty kept apart from what is absent"),
        pytest.param(TAINTED, TAINTED_JSON, id="a node"),
        pytest.param(Pod(), {}, id="an object with nothing set"),
    ],
)
def test_the_whole_json_of_an_object(obj, written):
    assert json.loads(codec.encode(obj)) == written
    assert codec.decode(type(obj), json.dumps(written)) == obj


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param('{"spec":{"foo":{"bar":[1]}},"x":1}', Pod(), id="unknown fields are dropped"),
        pytest.param(
            '{"metadata":{"creationTimestamp":null},"spec":{"containers":null,"volumes":null}}',
            Pod(),
            id="null means absent, for lists too",
        ),
        pytest.param(
            '{"spec":{"tolerations":[{"key":"a","value":null}]}}',
            Pod(spec=PodSpec(tolerations=[pod.Toleration(key="a")])),
            id="null within a list's element means absent",
        ),
    ],
)
def test_lenient_where_kubernetes_is(data, expected):
    assert codec.decode(Pod, data) == expected


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(
            '{"kind":"Pod","metadata":{"name":"w","namespace":"d"},"spec":{"priority":"high"}}',
            "Pod d/w: Expected `int | null`, got `str` - at `$.spec.priority`",
            id="a wrong type names object and field",
        ),
        pytest.param(
            '{"metadata":{"name":"w"},"spec":{"containers":[{"ports":[{"hostPort":"80"}]}]}}',
            "Pod w: Expected `int`, got `str` - at `$.spec.containers[0].ports[0].hostPort`",
            id="the path goes into lists, and the type stands in for a missing kind",
        ),
        pytest.param("[1]", "Pod: Expected `object`, got `array`", id="not an object"),
        pytest.param('{"metadata":', "Pod: not JSON: ", id="cut off"),
        pytest.param("", "Pod: not JSON: ", id="no bytes at all"),
        pytest.param(b"\xff\xfe", "Pod: not JSON: ", id="not text"),
        pytest.param(b'{"kind":"\xff"}', "Pod: not JSON: ", id="text that is not UTF-8"),
    ],
)
def test_refused_with_a_telling_error(data, message):
    with pytest.raises(DecodeError) as caught:
        codec.decode(Pod, data)
    assert str(caught.value).startswith(message)


def test_untyped_gives_plain_values():
    assert codec.decode_untyped(b'{"a":[1,null,true,"x",1.5]}') == {"a": [1, None, True, "x", 1.5]}
    with pytest.raises(DecodeError, match="not JSON"):
        codec.decode_untyped(b"{")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("[" * 100_000, id="lists"),
        pytest.param('{"metadata":' * 100_000, id="objects"),
        pytest.param('{"spec":{"unknown":' + "[" * 100_000, id="within an unknown field"),
    ],
)
def test_endless_nesting_is_an_error_like_others(data):
    with pytest.raises(DecodeError):
        codec.decode(Pod, data)
    with pytest.raises(DecodeError, match="not JSON"):
        codec.decode_untyped(data)


def test_nesting_that_is_read_but_not_searched_for_nulls_is_an_error_too():
    # Up to Python 3.11 compiled code counts towards the interpreter's limit of 1000, later it has
    # a larger one of its own.
    depth = 900 if sys.version_info < (3, 12) else 2000
    deep = "[" * depth + "]" * depth
    with pytest.raises(DecodeError):
        codec.decode(Pod, '{"spec":{"containers":null,"unknown":' + deep + "}}")


def test_a_decoder_is_built_once():
    assert codec.decoder(PartialObject) is codec.decoder(PartialObject)


def test_absent_lists_are_not_shared_between_objects():
    first, second = codec.decode(Pod, '{"spec":{}}'), codec.decode(Pod, '{"spec":{}}')
    assert first.spec.tolerations is not second.spec.tolerations
