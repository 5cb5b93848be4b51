"""The emulated version: its spellings, where it is named, and what is refused."""

from __future__ import annotations

import pytest

from moorage.base.errors import ConfigError
from moorage.config.feature_gates import FeatureGates
from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration, emulating

_OWN = "apiVersion: moorage.dev/v1alpha1\nkind: MoorageConfiguration\n"
_LIST = 'supported values: "1.36", "1.37"; 1.37 may also be written v1.37, kube=1.37 or kube=v1.37'


@pytest.mark.parametrize("form", ["{}", "v{}", "kube={}", "kube=v{}"])
@pytest.mark.parametrize("version", ["1.36", "1.37"])
def test_each_version_has_four_spellings_on_the_command_line_and_in_the_file(version, form):
    text = form.format(version)
    by_flag = emulating(LoadedConfiguration(), version=text, oldest=text)
    by_file = parse_config(f'{_OWN}emulatedVersion: "{text}"\nminCompatibilityVersion: {text!r}\n')
    assert by_flag.gates == by_file.gates == FeatureGates({}, version, version)
    assert by_flag.own.emulated_version == by_file.own.emulated_version == version


def test_without_a_word_about_it_1_36_is_emulated():
    assert LoadedConfiguration().gates == parse_config(_OWN).gates == FeatureGates({}, "1.36", "")


def test_the_flag_overrides_the_file():
    loaded = parse_config(f"{_OWN}emulatedVersion: v1.37\n")
    assert emulating(loaded).gates.version == "1.37"
    assert emulating(loaded, version="1.36").gates.version == "1.36"


@pytest.mark.parametrize(
    ("version", "oldest", "fault"),
    [
        pytest.param(
            "1.38", "", f'--emulated-version: Unsupported value: "1.38": {_LIST}', id="newer"
        ),
        pytest.param(
            "v1.35", "", f'--emulated-version: Unsupported value: "v1.35": {_LIST}', id="older"
        ),
        pytest.param(
            "1.37.2",
            "",
            f'--emulated-version: Unsupported value: "1.37.2": {_LIST}',
            id="a patch release, which kube-scheduler does not take either",
        ),
        pytest.param(
            "1.36",
            "1.37",
            '--min-compatibility-version: Invalid value: "1.37": must not be newer than the '
            "emulated version 1.36",
            id="a cluster that is newer than the scheduler",
        ),
        pytest.param(
            "1.37",
            "1.20",
            '--min-compatibility-version: Unsupported value: "1.20": supported values: "1.35", '
            f'"1.36", "1.37"{_LIST[32:]}',
            id="a cluster that is too old",
        ),
    ],
)
def test_any_other_version_is_refused_with_the_list(version, oldest, fault):
    with pytest.raises(ConfigError) as refused:
        emulating(LoadedConfiguration(), version=version, oldest=oldest)
    assert list(refused.value.faults) == [fault]


def test_a_file_with_another_version_is_refused_with_the_list():
    with pytest.raises(ConfigError) as refused:
        parse_config(f'{_OWN}emulatedVersion: "1.38"\n')
    assert list(refused.value.faults) == [
        f'MoorageConfiguration: emulatedVersion: Unsupported value: "1.38": {_LIST}'
    ]


def test_a_version_without_quotes_is_a_number_to_yaml_and_is_refused():
    with pytest.raises(ConfigError) as refused:
        parse_config(f"{_OWN}emulatedVersion: 1.37\n")
    assert list(refused.value.faults) == [
        "MoorageConfiguration: emulatedVersion: Invalid value: 1.37: expected str, got float"
    ]
