"""``--plugin``: what is told before anything starts, and what a scheduler is given."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from moorage.config.feature_gates import feature_gates
from moorage.config.load import parse_config
from moorage.config.merge import expand_profiles
from moorage.config.own import LoadedConfiguration, MoorageConfiguration
from moorage.plugins.from_outside import with_plugins
from tests.cli.conftest import Type

RULES = """
from moorage import plugin

@plugin.filter
def dry(pod, node):
    return True

@plugin.filter
def backwards(node, pod):
    return True

class Order:
    def sort_key(self, priority, timestamp_ns, pod):
        return (timestamp_ns,)
"""

NAMED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {filter: {enabled: [{name: Dry}]}}
"""


@pytest.fixture(autouse=True)
def rules(bare: Type, tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(RULES)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        pytest.param(
            "rules.py",
            "plugin 'rules.py': expected module:attribute or path/to/file.py:attribute",
            id="no name",
        ),
        pytest.param("no.py:dry", "plugin no.py:dry: there is no file no.py", id="no file"),
        pytest.param(
            "rules.py:backwards",
            'rules.py:backwards: plugin "Backwards": filter: takes `node` where it is given `pod`: '
            "it is called as backwards(pod, node)",
            id="a wrong signature, with plugin, point and argument",
        ),
    ],
)
def test_a_plugin_that_cannot_be_used_is_told_before_anything_starts(
    bare: Type, reference: str, message: str
) -> None:
    result = bare("up", "--plugin", reference)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"error: {message}\n")


def test_a_plugin_given_twice_is_told(bare: Type) -> None:
    result = bare("up", "--plugin", "rules.py:dry", "--plugin", "./rules.py:dry")
    assert result.stderr == "error: plugin ./rules.py:dry: a plugin named Dry already exists\n"


def test_the_plugins_a_scheduler_gets_and_the_lines_it_prints(bare: Type) -> None:
    known = with_plugins(LoadedConfiguration(), ["rules.py:dry", "rules.py:Order"])
    assert known.notes == (
        "plugin Dry (rules.py:dry) extends filter: enabled in every profile",
        "plugin Order (rules.py:Order) extends queueSort: enabled in every profile",
    )
    (spec,) = expand_profiles(known.config.scheduler, known.registry)
    assert (spec.points["filter"][-1], spec.points["queueSort"]) == ("Dry", ("Order",))


def test_a_configuration_that_names_the_plugin_decides(bare: Type) -> None:
    known = with_plugins(parse_config(NAMED), ["rules.py:dry"])
    assert known.config == parse_config(NAMED)
    assert known.notes == (
        "plugin Dry (rules.py:dry) extends filter: where the configuration enables it",
    )


def test_the_rest_of_the_configuration_stays() -> None:
    own = MoorageConfiguration(plugin_budget_seconds=2.5)
    config = LoadedConfiguration(own=own, gates=feature_gates({"GenericWorkload": True}))
    assert msgspec.structs.replace(with_plugins(config, []).config, scheduler=config.scheduler) == (
        config
    )
