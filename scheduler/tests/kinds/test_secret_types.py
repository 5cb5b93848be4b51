"""Secrets have what those who read their type look for."""

from __future__ import annotations

import base64

import pytest

from scheduler.tests.kinds.builders import create_errors, named

NAME = "kubernetes.io/service-account.name"


def _coded(**data: str) -> dict[str, str]:
    names = {"config": ".dockerconfigjson", "old": ".dockercfg", "crt": "tls.crt", "key": "tls.key"}
    return {
        names.get(key, key).replace("_", "-"): base64.b64encode(value.encode()).decode()
        for key, value in data.items()
    }


@pytest.mark.parametrize(
    ("kind", "data", "messages"),
    [
        pytest.param("kubernetes.io/tls", _coded(crt="c", key="k"), [], id="a certificate"),
        pytest.param(
            "kubernetes.io/tls",
            _coded(key="k"),
            ["data[tls.crt]: Required value"],
            id="a key without certificate",
        ),
        pytest.param("kubernetes.io/dockerconfigjson", _coded(config="{}"), [], id="a registry"),
        pytest.param(
            "kubernetes.io/dockerconfigjson",
            {},
            ["data[.dockerconfigjson]: Required value"],
            id="no registry",
        ),
        pytest.param(
            "kubernetes.io/dockercfg",
            _coded(old="[]"),
            [
                'data[.dockercfg]: Invalid value: "<secret contents redacted>": Expected '
                "`object`, got `array`"
            ],
            id="a list instead of registries",
        ),
        pytest.param("kubernetes.io/basic-auth", _coded(password="x"), [], id="a password"),
        pytest.param(
            "kubernetes.io/basic-auth",
            {},
            ["data[username]: Required value", "data[password]: Required value"],
            id="basic-auth without user and password",
        ),
        pytest.param(
            "kubernetes.io/ssh-auth",
            _coded(ssh_privatekey=""),
            ["data[ssh-privatekey]: Required value"],
            id="an empty key",
        ),
        pytest.param("example.com/own", {}, [], id="a type of somebody's"),
    ],
)
def test_the_type_of_a_secret_requires_its_keys(kind, data, messages):
    assert create_errors("secrets", named("secrets", type=kind, data=data)) == messages


def test_a_service_account_token_secret_names_its_account():
    token = named("secrets", type="kubernetes.io/service-account-token")
    assert create_errors("secrets", token) == [f"metadata.annotations[{NAME}]: Required value"]
    token["metadata"]["annotations"] = {NAME: "robot"}
    assert create_errors("secrets", token) == []
