"""The index of existing pods' terms: the pods meant, counts by domain, arrays, size.

That counts equal a naive count after any history, and in trials is held by `validate`,
which the tests of histories call.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.selectors import EVERYTHING, NOTHING, equality_selector
from moorage.snapshot import affinity_terms
from moorage.snapshot.affinity_terms import AffinityTerms, ExistingTerm, MatchingTerms, TermKind
from moorage.snapshot.pod_affinity import NO_TERMS, POD_AFFINITY, compile_pod_affinity
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.selector_index import SelectorIndex
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.snapshot.builders import cluster, node, pod, validate
from scheduler.tests.snapshot.histories import World, histories, pods

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NAMESPACE_LABELS: tuple[dict[str, str], ...] = ({}, {"app": "web"}, {"app": "db"})


def away(key: str = "zone", **selected: str):
    term = {"topologyKey": key, "labelSelector": {"matchLabels": selected}}
    return {"podAntiAffinity": {REQUIRED: [term]}}


def brute(snapshot: Snapshot, asked: PodInfo, namespace_labels: dict[str, str]) -> set[int]:
    return {
        id(one)
        for one in snapshot.affinity_terms
        if one.term.selects_pod(asked.namespace, asked.pod.metadata.labels, namespace_labels)
    }


def found(matching: MatchingTerms) -> set[int]:
    assert all(one.kind is TermKind.REQUIRED_ANTI for one in matching.required_anti)
    assert all(one.kind is not TermKind.REQUIRED_ANTI for one in matching.scored)
    every = [id(one) for one in (*matching.required_anti, *matching.scored)]
    assert len(every) == len(set(every))
    return set(every)


@settings(max_examples=50, deadline=None)
@given(histories, pods("asked"))
def test_the_terms_found_are_those_that_match(history, asked):
    world, info = World(), PodInfo(asked)
    terms = world.snapshot.affinity_terms
    for event in history:
        world.apply(event)
        for version, labels in enumerate(NAMESPACE_LABELS):
            matching = terms.matching(info, labels, labels_version=version)
            assert found(matching) == brute(world.snapshot, info, labels)
            assert terms.matching(info, labels, labels_version=version) is matching


@settings(max_examples=50, deadline=None)
@given(histories)
def test_arrays_follow_the_counts(history):
    world = World()
    terms = world.snapshot.affinity_terms
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(affinity_terms, "_DENSE_FROM", 1)
        patch.setattr(affinity_terms, "_DENSE_MOST", 3)
        for event in history:
            world.apply(event)
            validate(world.snapshot)
            for one in terms:
                assert table(terms, one, times=-2) == {v: -2 * c for v, c in one.counts().items()}


def table(terms: AffinityTerms, one: ExistingTerm, times: int) -> dict[str, int]:
    total_d = np.zeros(one.column.size + 1, np.int64)
    terms.domain_counts(one, total_d, times)
    assert total_d[-1] == 0
    return {one.column.values[i]: int(total_d[i]) for i in np.flatnonzero(total_d)}


def test_a_relabelled_node_takes_its_pods_to_another_domain():
    placed = {"n1": [pod("p", affinity=away()), pod("plain")], "n2": [pod("q", affinity=away())]}
    snapshot = cluster(node("n1", labels={"zone": "a"}), node("n2"), pods=placed)
    (one,) = snapshot.affinity_terms
    assert (one.uses, one.counts()) == (2, {"a": 1})
    snapshot.table.update_node(node("n2", labels={"zone": "a"}))
    assert (one.uses, one.counts()) == (2, {"a": 2})
    snapshot.table.update_node(node("n1", labels={"zone": "b"}))
    assert one.counts() == {"b": 1, "a": 1}
    snapshot.table.remove_node("n1")
    assert (one.uses, one.counts()) == (1, {"a": 1})
    snapshot.table.remove_pod("uid-q")
    assert list(snapshot.affinity_terms) == []


def test_replicas_share_a_term_and_a_pod_of_its_own_costs_no_array():
    snapshot = cluster(node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"}))
    for i in range(200):
        shared = pod(f"s{i}", labels={"app": "web"}, affinity=away(app="web"))
        snapshot.table.add_pod(shared, f"n{1 + i % 2}")
        snapshot.table.add_pod(pod(f"o{i}", affinity=away(own=str(i))), "n1")
    terms = snapshot.affinity_terms
    assert len(terms) == 201
    asked = PodInfo(pod("asked", labels={"app": "web", "own": "7"}))
    matching = terms.matching(asked, {}, labels_version=0)
    assert [one.counts() for one in matching.required_anti] == [{"a": 100, "b": 100}, {"a": 1}]
    assert all(one._dense is None for one in terms)


def test_equal_affinity_terms_of_different_pods_share_one_part():
    one, two = PodInfo(pod("one", affinity=away())), PodInfo(pod("two", affinity=away()))
    assert one.part(POD_AFFINITY) is two.part(POD_AFFINITY)
    other = PodInfo(pod("other", namespace="b", affinity=away()))
    assert other.part(POD_AFFINITY) is not one.part(POD_AFFINITY)
    assert compile_pod_affinity(pod("p", affinity={"podAffinity": {}})) == NO_TERMS
    plain, empty = PodInfo(pod("p", namespace="c")), PodInfo(pod("q", affinity={}))
    assert plain.part(POD_AFFINITY) is empty.part(POD_AFFINITY)


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                [
                    EVERYTHING,
                    NOTHING,
                    equality_selector({"app": "web"}),
                    equality_selector({"app": "web", "tier": "x"}),
                ]
            ),
            st.sampled_from([None, frozenset("a"), frozenset("ab"), frozenset()]),
        ),
        max_size=8,
    ),
    st.sets(st.integers(0, 7)),
)
def test_a_selector_index_misses_nothing_and_names_nothing_twice(filed, gone):
    index: SelectorIndex[int] = SelectorIndex()
    for number, (selector, namespaces) in enumerate(filed):
        index.add(number, selector, namespaces)
    gone = {number for number in gone if number < len(filed)}
    for number in sorted(gone):
        index.remove(number, *filed[number])
    assert len(index) == len(filed) - len(gone)
    for namespace in ("a", "b"):
        for labels in ({}, {"app": "web"}, {"app": "db", "tier": "x"}, {"app": "web", "tier": "x"}):
            candidates = list(index.candidates(namespace, labels))
            assert len(candidates) == len(set(candidates))
            matching = {
                number
                for number, (selector, namespaces) in enumerate(filed)
                if number not in gone
                and selector.matches(labels)
                and (namespaces is None or namespace in namespaces)
            }
            assert matching <= set(candidates) <= set(range(len(filed))) - gone
    for number, entry in enumerate(filed):
        if number not in gone:
            index.remove(number, *entry)
    assert index._by_namespace == {}
