"""Selectors that cost too much: whose attempt fails, and what the message says.

Does not cover: the costs themselves (`scheduler.tests.cel.test_cost`).
"""

from __future__ import annotations

import pytest

from moorage.api.devices import ResourceClaim
from scheduler.tests.plugins.builders import pod
from scheduler.tests.plugins.claims.builders import claim, devices, wanting
from scheduler.tests.plugins.claims.test_dynamic_resources import GPUS, Asked

pytest.importorskip("cel_expr_python")


def selecting(expression: str) -> ResourceClaim:
    selector = {"cel": {"expression": expression}}
    wish = {"deviceClassName": "gpu", "count": 1, "selectors": [selector]}
    return claim(requests=[{"name": "r", "exactly": wish}])


def test_a_selector_that_costs_too_much_fails_its_own_pod_and_is_named():
    grows = f'"{"a" * 1500}".replace("", "{"a" * 500}").replace("", "{"b" * 50}").size() > 0'
    asked = Asked(devices(*GPUS, selecting(grows), claim("d")))
    assert set(asked.filtered().values()) == {
        "claim default/c, request r: claim default/c: selector #0: too complex, exceeds cost limit "
        "(it may cost 4828150, and at most 1000000 is allowed)"
    }
    other = pod("q", resourceClaims=wanting("d"))
    assert Asked(asked.snapshot, other, plugin=asked.plugin).filtered() == {}


def test_selectors_that_together_cost_too_much_continue_in_the_next_attempt():
    """A first attempt ends where its budget ends, and keeps the answers that it has."""
    texts = " + ".join(["'" + "x" * 900 + "'"] * 9)
    costly = f"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(i, ({texts} + '%d').size() > i)"
    selectors = [{"cel": {"expression": costly % n}} for n in range(40)]
    wish = {"deviceClassName": "gpu", "count": 1, "selectors": selectors}
    snapshot = devices(*GPUS, claim(requests=[{"name": "r", "exactly": wish}]))
    asked = Asked(snapshot)
    [fault] = set(asked.filtered().values())
    assert fault == (
        "the selectors of all claims of the pod cost more than 10000000 in this attempt; the next "
        "attempt continues from here"
    )
    attempts = 1
    while asked.filtered() and attempts < 20:
        asked = Asked(snapshot, plugin=asked.plugin)
        attempts += 1
    assert 1 < attempts < 10
