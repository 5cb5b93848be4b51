"""Tolerations against taints."""

import pytest

from moorage.api.node import Taint
from moorage.api.pod import Toleration
from moorage.api.taints import SCHEDULING_EFFECTS, find_untolerated, tolerated, tolerates

DISK = Taint(key="disk", value="slow", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "taint", "expected"),
    [
        pytest.param(
            Toleration(key="disk", operator="Equal", value="slow", effect="NoSchedule"),
            DISK,
            True,
            id="all equal",
        ),
        pytest.param(
            Toleration(key="disk", value="slow"), DISK, True, id="no operator means Equal"
        ),
        pytest.param(
            Toleration(key="disk", value="slow", effect="NoExecute"),
            DISK,
            False,
            id="another effect",
        ),
        pytest.param(Toleration(key="disk", value="fast"), DISK, False, id="another value"),
        pytest.param(Toleration(key="net", value="slow"), DISK, False, id="another key"),
        pytest.param(
            Toleration(key="disk", operator="Exists"), DISK, True, id="Exists takes any value"
        ),
        pytest.param(
            Toleration(key="net", operator="Exists"), DISK, False, id="Exists looks at the key"
        ),
        pytest.param(
            Toleration(operator="Exists"), DISK, True, id="Exists without key takes everything"
        ),
        pytest.param(
            Toleration(operator="Exists", effect="NoExecute"),
            DISK,
            False,
            id="Exists without key still looks at the effect",
        ),
        pytest.param(
            Toleration(value="slow"), DISK, True, id="Equal without key takes any key of the value"
        ),
        pytest.param(
            Toleration(), Taint(key="a", effect="NoExecute"), True, id="an empty one takes no value"
        ),
        pytest.param(Toleration(), DISK, False, id="an empty one does not take a value"),
        pytest.param(
            Toleration(key="n", operator="Gt", value="1"),
            Taint(key="n", value="2", effect="NoSchedule"),
            False,
            id="comparison is off by default",
        ),
        pytest.param(
            Toleration(key="disk", operator="exists"), DISK, False, id="operators have one spelling"
        ),
    ],
)
def test_whether_a_toleration_tolerates_a_taint(toleration, taint, expected):
    assert tolerates(toleration, taint) is expected
    assert tolerated(taint, [toleration]) is expected


A = Taint(key="a", effect="NoSchedule")
B = Taint(key="b", effect="NoExecute")
SOFT = Taint(key="c", effect="PreferNoSchedule")
ALL_A = Toleration(key="a", operator="Exists")
ALL_B = Toleration(key="b", operator="Exists")


@pytest.mark.parametrize(
    ("taints", "tolerations", "expected"),
    [
        pytest.param([], [], None, id="no taints"),
        pytest.param([A, B], [], A, id="the first in order"),
        pytest.param([B, A], [], B, id="whatever its effect"),
        pytest.param([A, B], [ALL_A], B, id="the first that is left"),
        pytest.param([A, B], [ALL_B, ALL_A], None, id="all tolerated"),
        pytest.param([SOFT], [], None, id="preferences do not count"),
    ],
)
def test_find_untolerated(taints, tolerations, expected):
    assert find_untolerated(taints, tolerations, SCHEDULING_EFFECTS) == expected
