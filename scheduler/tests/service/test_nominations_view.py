"""Nominations as the snapshot reads them: who catches up by the log misses nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Container, Pod, PodSpec
from moorage.service.binding.nominations import Nominations
from moorage.snapshot.key_log import KeyLog
from moorage.state.nominations import NominatingInfo, Nominator

_PODS = {
    name: Pod(
        metadata=ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}"),
        spec=PodSpec(containers=[Container(name="c")], priority=len(name)),
    )
    for name in ("a", "bb", "ccc")
}
_names, _nodes = st.sampled_from(sorted(_PODS)), st.sampled_from(["n1", "n2", ""])

steps = st.lists(
    st.one_of(
        st.tuples(st.just("nominate"), _names, _nodes),
        st.tuples(st.sampled_from(["withdraw", "pop", "queue"]), _names, st.just("")),
        st.tuples(st.just("count"), st.just(""), st.just("")),
        st.tuples(st.sampled_from(["first reader", "second reader"]), st.just(""), st.just("")),
    ),
    max_size=40,
)


class _Reader:
    """Remembers what it read, and reads again what the log says has changed."""

    def __init__(self) -> None:
        self.position = 0
        self.seen: dict[str, list[Pod]] = {}

    def catch_up(self, log: KeyLog[str], nominations: Nominations) -> None:
        names = log.since(self.position)
        assert names is not None, "the log is long enough"
        self.position = log.position
        for name in names:
            self.seen[name] = [info.pod for info in nominations.get(name, ())]


@given(steps)
def test_the_nominations_view_equals_the_nominator(history):
    queued = dict(_PODS)
    by_key = {pod.key: pod for pod in _PODS.values()}
    nominator = Nominator(lambda namespace, name: by_key[namespace, name])
    nominations = Nominations(nominator)
    readers = {"first reader": _Reader(), "second reader": _Reader()}
    for what, name, node_name in (*history, *((each, "", "") for each in readers)):
        match what:
            case "nominate":
                nominator.add(_PODS[name], NominatingInfo(node_name), queued=queued.get(name))
            case "withdraw":
                nominator.withdraw_nomination(_PODS[name])
            case "pop":
                queued.pop(name, None)
                nominator.left(_PODS[name].uid)
            case "queue":
                queued[name] = _PODS[name]
                nominator.entered(_PODS[name])
            case "count":
                assert len(nominations) == len({at for _, at in nominator if at})
            case _:
                reader = readers[what]
                reader.catch_up(nominator.log, nominations)
                for node in ("n1", "n2"):
                    assert reader.seen.get(node, []) == nominator.for_node(node)


def test_a_view_that_fell_far_behind_the_log_is_read_afresh():
    nominator = Nominator(lambda namespace, name: _PODS[name])
    nominations = Nominations(nominator)
    nominator.add(_PODS["a"], NominatingInfo("n1"), queued=None)
    assert list(nominations) == ["n1"]
    for i in range(10_000):
        nominator.add(_PODS["a"], NominatingInfo(f"n{i % 3 + 2}"), queued=_PODS["a"])
    assert nominator.log.since(1) is None
    assert {name: [info.pod for info in infos] for name, infos in nominations.items()} == {
        "n2": [_PODS["a"]]
    }
