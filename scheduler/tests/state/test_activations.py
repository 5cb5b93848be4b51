"""Pods that plugins want tried again: put in by them, taken out by the queue."""

from __future__ import annotations

import pytest

from moorage.state.activations import Activations
from scheduler.tests.state.build import World, pod


def test_pods_are_taken_out_once_in_the_order_they_were_put_in():
    wakes = []
    activations = Activations(lambda: wakes.append("wake"))
    activations.add_pods([pod("b")])
    activations.add_pods([pod("a"), pod("c")])
    assert (len(activations), wakes) == (3, ["wake", "wake"])
    assert [each.name for each in activations.take_all()] == ["b", "a", "c"]
    assert (len(activations), activations.take_all()) == (0, [])


def test_putting_in_no_pods_does_not_wake_the_popper():
    wakes = []
    Activations(lambda: wakes.append("wake")).add_pods([])
    assert wakes == []


def test_the_queue_activates_pods_before_a_pop():
    world = World()
    world.add(pod("a"))
    world.fail(world.pop(), "Fit")
    assert world.places() == {"a": "unschedulable"}
    world.activations.add_pods([pod("a"), pod("unknown")])
    assert world.pop().pod.name == "a"
    world.queue.validate()


@pytest.mark.parametrize(
    ("put", "place"),
    [
        pytest.param(True, "backoff", id="activated in flight: it comes back to backoffQ"),
        pytest.param(False, "unschedulable", id="not activated: it waits for an event"),
    ],
)
def test_the_queue_activates_pods_before_a_failed_pod_returns(put, place):
    world = World()
    world.add(pod("a"))
    queued = world.pop()
    if put:
        world.activations.add_pods([pod("a")])
    world.fail(queued, "Fit")
    assert world.places() == {"a": place}
    world.queue.validate()
