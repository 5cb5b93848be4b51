"""The sums of allocated devices: adding, removing, and allocations that do not count."""

from __future__ import annotations

from moorage.plugins.claims.devices.allocated import AllocatedState
from moorage.plugins.claims.devices.contract import DeviceID
from scheduler.tests.plugins.claims.devices.builders import DRIVER, allocation

A = DeviceID(DRIVER, "p1", "a")
SHARE_1 = allocation({"device": "a", "shareID": "1", "consumedCapacity": {"memory": "2Gi"}})
SHARE_2 = allocation({"device": "a", "shareID": "2", "consumedCapacity": {"memory": "1Gi", "x": 1}})
NANO = 10**9
GI = 2**30 * NANO


def test_a_whole_device_is_taken_until_it_is_given_back():
    books = AllocatedState([allocation({"device": "a"}, {"device": "b"})])
    assert (books.is_taken(A), books.is_used(A), books.consumed(A)) == (True, True, None)
    books.remove(allocation({"device": "a"}, {"device": "b"}))
    assert (books.is_taken(A), books.is_used(A), books.pools) == (False, False, {})


def test_shares_add_up_and_leave_the_device_to_others():
    books = AllocatedState([SHARE_1, SHARE_2])
    assert (books.is_taken(A), books.is_used(A)) == (False, True)
    assert books.consumed(A) == {"memory": 3 * GI, "x": NANO}
    books.remove(SHARE_1)
    assert books.consumed(A) == {"memory": GI, "x": NANO}
    books.remove(SHARE_2)
    assert books.pools == {}


def test_a_share_of_nothing_uses_the_device():
    books = AllocatedState([allocation({"device": "a", "shareID": "1"})])
    assert (books.is_taken(A), books.is_used(A), books.consumed(A)) == (False, True, None)
    assert books.is_shared(A)


def test_admin_access_is_not_counted():
    assert AllocatedState([allocation({"device": "a", "adminAccess": True})]).pools == {}


def test_without_the_feature_a_share_is_the_whole_device():
    assert AllocatedState([SHARE_1], consumable_capacity=False).is_taken(A)


def test_a_share_of_an_amount_that_cannot_be_read_is_the_whole_device():
    unreadable = {"device": "a", "shareID": "1", "consumedCapacity": {"memory": "much"}}
    books = AllocatedState([SHARE_2, allocation(unreadable)])
    assert (books.is_taken(A), books.consumed(A)) == (True, {"memory": GI, "x": NANO})
    books.remove(allocation(unreadable))
    assert (books.is_taken(A), books.consumed(A)) == (False, {"memory": GI, "x": NANO})


def test_an_exchange_counts_what_removing_and_adding_would():
    whole = allocation({"device": "a"}, {"device": "b"})
    books = AllocatedState([whole, SHARE_1])
    books.exchange([whole, SHARE_1], [allocation({"device": "b"}), SHARE_2, SHARE_2])
    plain = AllocatedState([allocation({"device": "b"}), SHARE_2, SHARE_2])
    assert books.pools == plain.pools


def test_an_exchange_of_an_allocation_for_itself_changes_no_pool():
    books = AllocatedState([SHARE_1, allocation({"device": "b"})])
    position = books.log.position
    books.exchange([SHARE_1, allocation({"device": "b"})], [allocation({"device": "b"}), SHARE_1])
    assert books.log.position == position
