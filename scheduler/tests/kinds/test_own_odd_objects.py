"""Scope: odd objects of classes and workloads, and what kube-apiserver says of each."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.tests.kinds.builders import create_errors, named, template

_TOLERATION = {"key": "a", "operator": "Exists", "effect": "NoExecute"}


def _runtime_class(*tolerations: dict[str, Any]) -> dict[str, Any]:
    return named("runtimeclasses", "a") | {
        "handler": "h",
        "scheduling": {"tolerations": list(tolerations)},
    }


def _daemon_set(**strategy: Any) -> dict[str, Any]:
    body = template()
    body["metadata"] = {"labels": {"a": "b"}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": body, "updateStrategy": strategy}
    return named("daemonsets", "a") | {"spec": spec}


def _rolling(**values: Any) -> dict[str, Any]:
    return _daemon_set(type="RollingUpdate", rollingUpdate=values)


def _cron_job(name: str) -> dict[str, Any]:
    job = {"spec": {"template": template(restartPolicy="Never")}}
    return named("cronjobs", name) | {"spec": {"schedule": "@daily", "jobTemplate": job}}


_STRATEGY = "spec.updateStrategy"


@pytest.mark.parametrize(
    ("plural", "obj", "errors"),
    [
        pytest.param(
            "runtimeclasses",
            _runtime_class(_TOLERATION, {**_TOLERATION, "effect": "NoSchedule"}),
            [],
            id="tolerations of two effects",
        ),
        pytest.param(
            "runtimeclasses",
            _runtime_class(_TOLERATION, {**_TOLERATION, "tolerationSeconds": 5}),
            ["scheduling.tolerations[1]: Duplicate value"],
            id="one toleration with two durations",
        ),
        pytest.param("daemonsets", _daemon_set(type="OnDelete"), [], id="updates on delete"),
        pytest.param(
            "daemonsets",
            _daemon_set(type="Odd"),
            [f"{_STRATEGY}.type: Unsupported value"],
            id="an odd strategy",
        ),
        pytest.param("daemonsets", _rolling(maxSurge=1, maxUnavailable=0), [], id="a surge"),
        pytest.param(
            "daemonsets",
            _rolling(maxSurge=0, maxUnavailable=0),
            [f"{_STRATEGY}.rollingUpdate.maxUnavailable: Required value"],
            id="neither surge nor absence",
        ),
        pytest.param(
            "daemonsets",
            _rolling(maxSurge="10%", maxUnavailable=1),
            [f"{_STRATEGY}.rollingUpdate.maxSurge: Invalid value"],
            id="surge and absence",
        ),
        pytest.param(
            "daemonsets",
            _rolling(maxSurge="110%", maxUnavailable=0),
            [f"{_STRATEGY}.rollingUpdate.maxSurge: Invalid value"],
            id="a surge above all nodes",
        ),
        pytest.param("cronjobs", _cron_job("a" * 52), [], id="a cron job of 52 characters"),
        pytest.param(
            "cronjobs",
            _cron_job("a" * 53),
            ["metadata.name: Invalid value"],
            id="a cron job of 53 characters",
        ),
    ],
)
def test_odd_objects_are_judged_as_upstream(
    plural: str, obj: dict[str, Any], errors: list[str]
) -> None:
    found = create_errors(plural, obj)
    assert len(found) == len(errors), found
    assert all(text.startswith(error) for text, error in zip(found, errors, strict=True)), found
