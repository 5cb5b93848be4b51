"""The keyed heap against a sorted list."""

from hypothesis import given
from hypothesis import strategies as st

from moorage.state.keyed_heap import KeyedHeap
from moorage.state.queued_pod import QueuedPod
from scheduler.tests.state.build import pod

NAMES = [f"p{n}" for n in range(12)]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(NAMES), st.integers(0, 4)),
        st.tuples(st.just("remove"), st.sampled_from(NAMES), st.just(0)),
        st.tuples(st.just("pop"), st.just(""), st.just(0)),
    ),
    max_size=60,
)


@given(STEPS)
def test_behaves_as_a_sorted_list_that_keeps_arrival(steps):
    sizes: list[int] = []
    heap = KeyedHeap(lambda queued: queued.timestamp_ns, sizes.append)
    naive: dict[str, tuple[int, int]] = {}
    for number, (what, name, rank) in enumerate(steps):
        if what == "put":
            replaced = heap.put_pod(QueuedPod(pod(name), rank))
            assert (replaced is not None) == (name in naive)
            naive[name] = (rank, naive.get(name, (0, number))[1])
        elif what == "remove":
            removed = heap.remove(("ns", name))
            assert (removed is not None) == (naive.pop(name, None) is not None)
        else:
            first = min(naive, key=lambda each: naive[each], default=None)
            popped = heap.pop()
            assert (popped.pod.name if popped else None) == first
            naive.pop(first or "", None)
        heap.validate()
        assert len(heap) == sum(sizes) == len(naive)
        by_arrival = sorted(naive, key=lambda each: naive[each][1])
        assert [queued.pod.name for queued in heap.queued_pods()] == by_arrival
        assert all(("ns", each) in heap for each in naive)
        in_order = sorted(naive, key=lambda each: naive[each])
        for count in (0, 1, 3, len(naive)):
            assert [queued.pod.name for queued in heap.first(count)] == in_order[:count]


def test_places_left_behind_do_not_pile_up():
    heap = KeyedHeap(lambda queued: queued.timestamp_ns, lambda delta: None)
    queued = QueuedPod(pod(), 0)
    for number in range(10_000):
        queued.timestamp_ns = number
        heap.put_pod(queued)
    assert len(heap._heap) < 200
    assert heap.pop() is queued
    assert heap.peek() is None


def test_a_pod_put_again_keeps_its_rank_among_equals():
    heap = KeyedHeap(lambda queued: 0, lambda delta: None)
    pods = [QueuedPod(pod(name), 0) for name in "abc"]
    for queued in pods:
        heap.put_pod(queued)
    heap.put_pod(pods[0])
    assert [heap.pop() for _ in pods] == pods
