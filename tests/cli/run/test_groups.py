"""``--groups``: Coscheduling in every profile, and the gates of Kubernetes' groups."""

from __future__ import annotations

import pytest

from moorage.base.errors import ConfigError
from moorage.config.feature_gates import parse_feature_gates
from moorage.config.load import parse_config
from moorage.config.merge import expand_profiles
from moorage.config.own import LoadedConfiguration, emulating, with_groups
from moorage.plugins.in_tree import in_tree_registry

_HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
_TWO_PROFILES = f"{_HEAD}profiles: [{{schedulerName: a}}, {{schedulerName: b}}]\n"
_COSCHEDULING = f"""{_HEAD}profiles:
- schedulerName: a
  plugins:
    multiPoint: {{enabled: [{{name: Coscheduling}}], disabled: [{{name: PrioritySort}}]}}
"""


def _points(config: LoadedConfiguration, point: str) -> dict[str, list[str]]:
    specs = expand_profiles(config.scheduler, in_tree_registry(), gates=config.gates)
    return {spec.scheduler_name: list(spec.points.get(point, ())) for spec in specs}


@pytest.mark.parametrize(
    ("config", "names"),
    [
        pytest.param(LoadedConfiguration(), ["default-scheduler"], id="the defaults"),
        pytest.param(parse_config(_TWO_PROFILES), ["a", "b"], id="every profile of a file"),
        pytest.param(parse_config(_COSCHEDULING), ["a"], id="a profile that has the plugin"),
        pytest.param(
            emulating(LoadedConfiguration(), version="1.37"), ["default-scheduler"], id="1.37"
        ),
    ],
)
def test_each_form_of_group_is_scheduled(config: LoadedConfiguration, names: list[str]) -> None:
    found = with_groups(config)
    assert _points(found, "queueSort") == {name: ["Coscheduling"] for name in names}
    permit = {name: sorted(plugins) for name, plugins in _points(found, "permit").items()}
    assert permit == {name: ["Coscheduling", "GangScheduling"] for name in names}
    assert with_groups(found) == found


def test_a_gate_that_the_user_switched_stays() -> None:
    config = LoadedConfiguration(gates=parse_feature_gates("GangScheduling=false", "1.36"))
    assert _points(with_groups(config), "permit") == {"default-scheduler": ["Coscheduling"]}


def test_a_gate_that_the_others_need_is_not_switched_behind_the_users_back() -> None:
    config = LoadedConfiguration(gates=parse_feature_gates("GenericWorkload=false"))
    with pytest.raises(ConfigError, match="GangScheduling"):
        with_groups(config)
