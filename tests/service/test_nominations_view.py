"""Nominations as the snapshot reads them: who catches up by the log misses nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Container, Pod, PodSpec
from moorage.service.core import Nominations
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

    def catch_up(self, nominations: Nominations) -> None:
        names = nominations.log.since(self.position)
        assert names is not None, "the log is long enough"
        self.position = nominations.log.position
        for name in names:
            self.seen[name] = [info.pod for info in nominations.get(name, ())]


@given(steps)
def test_a_reader_of_the_log_sees_what_the_nominator_says(history):
    queued = dict(_PODS)
    by_key = {pod.key: pod for pod in _PODS.values()}
    nominator = Nominator(
        lambda namespace, name: by_key[namespace, name], lambda key: queued.get(key[1])
    )
    nominations = Nominations(nominator)
    readers = {"first reader": _Reader(), "second reader": _Reader()}
    for what, name, node_name in (*history, *((each, "", "") for each in readers)):
        match what:
            case "nominate":
                nominator.add(_PODS[name], NominatingInfo(node_name))
            case "withdraw":
                nominator.delete(_PODS[name])
            case "pop":
                queued.pop(name, None)
                nominator.touch(_PODS[name].uid)
            case "queue":
                queued[name] = _PODS[name]
                nominator.touch(_PODS[name].uid)
            case "count":
                assert len(nominations) == len({at for _, at in nominator if at})
            case _:
                reader = readers[what]
                reader.catch_up(nominations)
                for node in ("n1", "n2"):
                    assert reader.seen.get(node, []) == nominator.for_node(node)
