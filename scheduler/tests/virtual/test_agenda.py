"""Orders of what happens at one moment: as listed, the reverse, and drawn ones."""

from __future__ import annotations

import pytest

from moorage.base.rng import Streams
from moorage.virtual.agenda import DRAWN_MOST, Order, orders_to_try

_ITEMS = (1, 2, 3, 4)


def _order(number: int) -> Order:
    return Order(number, Streams(7))


@pytest.mark.parametrize(
    ("number", "expected"),
    [pytest.param(0, (1, 2, 3, 4), id="as listed"), pytest.param(1, (4, 3, 2, 1), id="reverse")],
)
def test_the_first_two_orders_add_no_delay(number: int, expected: tuple[int, ...]) -> None:
    order = _order(number)
    assert (order.arrange(_ITEMS), order.delay_seconds()) == (expected, 0.0)


def test_a_drawn_order_is_the_same_each_time() -> None:
    first, second = _order(2), _order(2)
    assert first.arrange(_ITEMS) == second.arrange(_ITEMS)
    assert 0.0 < first.delay_seconds() == second.delay_seconds() < 0.01


def test_each_drawn_order_has_its_reverse() -> None:
    drawn, reverse = _order(4), _order(5)
    assert list(drawn.arrange(_ITEMS)) == list(reverse.arrange(_ITEMS))[::-1]
    assert drawn.delay_seconds() < drawn.delay_seconds()  # of two calls the first is earlier
    assert reverse.delay_seconds() > reverse.delay_seconds()


def test_drawn_orders_differ() -> None:
    drawn = {tuple(_order(number).arrange(_ITEMS)) for number in range(2, 2 + DRAWN_MOST)}
    assert len(drawn) > 1
    assert {tuple(sorted(each)) for each in drawn} == {_ITEMS}


@pytest.mark.parametrize(
    ("attempts", "pods", "count"),
    [
        pytest.param(0, 0, 7, id="nothing was tried"),
        pytest.param(10, 100, 7, id="a small cluster"),
        pytest.param(1500, 0, 3, id="many attempts"),
        pytest.param(0, 30_000, 3, id="many pods"),
        pytest.param(5000, 0, 1, id="so many attempts that only the reverse is tried"),
    ],
)
def test_fewer_orders_are_tried_where_one_takes_long(attempts: int, pods: int, count: int) -> None:
    assert orders_to_try(attempts, pods) == range(1, 1 + count)
