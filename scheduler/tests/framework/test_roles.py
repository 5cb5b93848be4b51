"""Roles: what a plugin may declare, what stops the start, and what the profile makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base.errors import ConfigError
from moorage.framework.roles import ROLES, Role, roles_of
from moorage.framework.status import SUCCESS
from scheduler.tests.framework.builders import Fake, answers, profile
from scheduler.tests.framework.outside import profile as outside


def test_every_role_has_a_rule():
    assert list(ROLES) == [each for each in Role if each]
    assert all(rules.meaning.endswith(".") for rules in ROLES.values())


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        pytest.param(Fake("P"), Role.NONE, id="a plugin that declares nothing has no role"),
        pytest.param(
            Fake("P", post_filter=answers(None), roles=Role.PREEMPTS),
            Role.PREEMPTS,
            id="a role of an extension point that the plugin extends",
        ),
        pytest.param(
            Fake(
                "P",
                sort_key=answers(()),
                roles=Role.SORTS_BY_FIRST_ATTEMPT | Role.EVICTS_WHOLE_GANGS,
            ),
            Role.SORTS_BY_FIRST_ATTEMPT | Role.EVICTS_WHOLE_GANGS,
            id="two roles",
        ),
    ],
)
def test_the_roles_of_a_plugin(plugin: Any, expected: Role):
    assert roles_of("P", plugin) == expected


@pytest.mark.parametrize(
    ("plugin", "fault"),
    [
        pytest.param(
            Fake("P", roles=Role.PREEMPTS),
            "role PREEMPTS needs the method post_filter",
            id="a role of an extension point that the plugin does not extend",
        ),
        pytest.param(
            Fake("P", roles=("preempts",)),
            "roles: ('preempts',) is no Role",
            id="texts instead of a role",
        ),
    ],
)
def test_a_faulty_declaration_stops_the_start(plugin: Any, fault: str):
    with pytest.raises(ConfigError) as caught:
        roles_of("P", plugin)
    assert list(caught.value.faults) == [f'plugin "P": {fault}']


def test_the_profile_knows_its_plugins_by_their_roles():
    made = profile(
        Fake("A", post_filter=answers(None), filter=answers(None), roles=Role.PREEMPTS),
        Fake("B", post_filter=answers(None), roles=Role.EVICTS_WHOLE_GANGS),
        Fake("C", filter=answers(None), roles=Role.FILTERS_CANDIDATES),
        Fake("D", filter_node=answers(SUCCESS)),
    )
    assert made.preempting == ("A",)
    assert made.evicts_whole_gangs
    assert [each.name for each in made.filter_forms if each.row_by_row] == ["C", "D"]


def test_a_scalar_filter_from_outside_is_asked_about_candidates_only():
    made, _ = outside(filter_node=SUCCESS)
    assert made.roles == {"Mine": Role.FILTERS_CANDIDATES}
    assert [each.row_by_row for each in made.filter_forms] == [True]


def test_a_plugin_from_outside_may_not_evict_whole_gangs():
    with pytest.raises(ConfigError, match='"Mine": role EVICTS_WHOLE_GANGS is for in-tree plugins'):
        outside(post_filter=None, roles=Role.EVICTS_WHOLE_GANGS)
