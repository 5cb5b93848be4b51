"""Claims as believed: versions from answers to writes, and allocations under way."""

from __future__ import annotations

import msgspec
import pytest

from moorage.api.devices import AllocationResult, ResourceClaim, ResourceClaimStatus
from moorage.api.meta import ObjectMeta, OwnerReference
from moorage.snapshot.claim_table import ClaimTable, allocation_of
from moorage.snapshot.listers import Lister

ALLOCATED = ResourceClaimStatus(allocation=AllocationResult())


def claim(version: str, *, uid: str = "u", allocated: bool = False) -> ResourceClaim:
    return ResourceClaim(
        metadata=ObjectMeta(namespace="ns", name="c", uid=uid, resource_version=version),
        status=ALLOCATED if allocated else ResourceClaimStatus(),
    )


def table_with(*claims: ResourceClaim) -> tuple[ClaimTable, Lister[ResourceClaim]]:
    lister: Lister[ResourceClaim] = Lister()
    for each in claims:
        lister.put(each)
    return ClaimTable(lister), lister


def test_a_written_version_stands_until_the_watch_shows_one_that_is_not_older():
    table, lister = table_with(claim("5"))
    written = claim("8", allocated=True)
    assert table.assume(written)
    assert table.get("ns", "c") is written
    assert table.all_claims() == [written]
    lister.put(claim("7"))  # somebody else's write, which ours came after
    assert table.get("ns", "c") is written
    shown = claim("8", allocated=True)
    lister.put(shown)
    assert table.get("ns", "c") is shown
    lister.put(claim("9"))
    assert table.get("ns", "c") == claim("9")


@pytest.mark.parametrize(
    "overtaken",
    [
        pytest.param(None, id="the claim is deleted"),
        pytest.param(claim("1", uid="other"), id="another claim has its name"),
    ],
)
def test_a_written_version_ends_with_its_claim(overtaken):
    table, lister = table_with(claim("5"))
    table.assume(claim("8", allocated=True))
    lister.remove(claim("5"))
    if overtaken is not None:
        lister.put(overtaken)
    assert table.get("ns", "c") is overtaken
    lister.put(claim("5"))
    assert table.get("ns", "c") == claim("5")


def test_an_answer_that_the_watch_has_overtaken_changes_nothing():
    table, _ = table_with(claim("9"))
    assert table.assume(claim("8", allocated=True))
    assert table.get("ns", "c") == claim("9")


def test_an_answer_that_comes_late_does_not_replace_a_newer_version():
    table, _ = table_with(claim("7"))
    newest = claim("9", allocated=True)
    assert table.assume(newest)
    assert table.assume(claim("8"))
    assert table.get("ns", "c") is newest


def test_a_claim_that_was_never_shown_cannot_be_assumed_yet():
    table, lister = table_with()
    assert not table.assume(claim("8"))
    assert table.get("ns", "c") is None
    lister.put(claim("7"))
    assert table.assume(claim("8"))


def test_changes_of_claims_are_logged_for_readers():
    table, lister = table_with(claim("5"))
    at = table.log.position
    table.assume(claim("8"))
    assert table.log.since(at) == [("ns", "c")]
    assert table.shown_log is lister.log


def test_an_allocation_under_way_stays_as_long_as_a_pod_wants_it():
    table, _ = table_with()
    decided = claim("5", allocated=True)
    table.begin_allocation("u", decided)
    table.begin_allocation("u", decided)
    assert list(table.under_way()) == [decided]
    assert not table.give_up("u")
    assert allocation_of(decided) == AllocationResult()
    assert table.give_up("u")
    assert not table.give_up("u")
    assert list(table.under_way()) == []


def test_a_written_allocation_is_no_longer_under_way_for_any_pod():
    table, _ = table_with()
    table.begin_allocation("u", claim("5", allocated=True))
    table.begin_allocation("u", claim("5", allocated=True))
    table.end_allocation("u")
    assert table.find_under_way("u") is None
    assert not table.give_up("u")


def test_an_allocation_on_trial_is_carried_out_as_soon_as_one_pod_means_it():
    table, _ = table_with()
    table.begin_allocation("u", claim("5", allocated=True), on_trial=True)
    under_way = table.find_under_way("u")
    assert under_way is not None
    assert under_way.on_trial
    table.begin_allocation("u", claim("5", allocated=True))
    assert not under_way.on_trial


def of_pod(
    name: str, *, namespace: str = "ns", pod: str = "p", controls: bool = True
) -> ResourceClaim:
    owner = OwnerReference(api_version="v1", kind="Pod", name="pod", uid=pod, controller=controls)
    metadata = ObjectMeta(
        namespace=namespace, name=name, uid=f"{namespace}/{name}", owner_references=[owner]
    )
    return ResourceClaim(metadata=metadata)


def controlled(table: ClaimTable, pod: str = "p") -> list[str]:
    return [each.name for each in table.controlled_by("ns", pod)]


def test_the_claims_that_a_pod_controls_follow_the_lister():
    table, lister = table_with(of_pod("b"), of_pod("a"), of_pod("x", pod="other"), claim("1"))
    lister.put(of_pod("elsewhere", namespace="other"))
    lister.put(of_pod("owned", controls=False))
    assert controlled(table) == ["b", "a"], "in order of arrival"
    lister.put(of_pod("b"))
    assert controlled(table) == ["b", "a"], "a change is no arrival"
    lister.remove(of_pod("b"))
    lister.put(of_pod("a", pod="other"))
    assert (controlled(table), controlled(table, "other")) == ([], ["x", "a"])
    lister.put(of_pod("b"))
    assert controlled(table) == ["b"]


def test_a_written_version_of_a_claim_that_a_pod_controls_is_its_newest():
    shown = of_pod("a")
    table, _ = table_with(shown)
    written = msgspec.structs.replace(
        shown, metadata=msgspec.structs.replace(shown.metadata, resource_version="8")
    )
    assert table.assume(written)
    assert table.controlled_by("ns", "p") == [written]


def test_more_changes_than_the_log_holds_are_followed():
    table, lister = table_with(of_pod("a"))
    assert controlled(table) == ["a"]
    lister.remove(of_pod("a"))
    for number in range(10_000):
        lister.put(of_pod(f"c{number}", pod=f"p{number}"))
    assert controlled(table) == []
    assert controlled(table, "p9999") == ["c9999"]
