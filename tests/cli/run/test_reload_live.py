"""A reload of a real sandbox: extenders and plugins change while pods come, and Events tell it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from sandbox.tests.sandbox.process import Up
from tests.cli.run.test_tracing import SECONDS_MAX, bound, moorage
from tests.scenarios.test_example_extender import extender

pytestmark = pytest.mark.slow

CONFIG = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- {urlPrefix: "%s", filterVerb: filter, prioritizeVerb: prioritize, weight: 1}
"""
PLUGIN = """from moorage import plugin

@plugin.filter
def only_on(pod, node):
    return node.name == "node-%s"
"""


def told(up: Up, reason: str, count: int) -> str:
    """Wait for so many Events of a reason; return the note of the last one."""
    end = time.monotonic() + SECONDS_MAX
    while time.monotonic() < end:
        events = json.loads(moorage(up, "get", "events", "-n", "default", "-o", "json"))["items"]
        found = [each for each in events if each["reason"] == reason]
        if sum(each.get("series", {"count": 1})["count"] for each in found) >= count:
            return str(found[-1]["message"])
    raise AssertionError(f"not {count} Events {reason}: {found}")


def nodes_of(up: Up, count: int) -> set[str]:
    bound(up, count)
    listed = json.loads(moorage(up, "get", "pods", "-l", f"app=d{count}", "-o", "json"))
    return {each["spec"]["nodeName"] for each in listed["items"]}


def test_extenders_and_plugins_are_replaced_and_a_broken_plugin_leaves_the_old_one(
    tmp_path: Path,
) -> None:
    config, plugin = tmp_path / "scheduler.yaml", tmp_path / "mine.py"
    with extender() as first, extender() as second:
        config.write_text(CONFIG % first.url)
        plugin.write_text(PLUGIN % "01")
        words = ["--nodes", "3", "--empty", "--config", str(config)]
        with Up(tmp_path, *words, "--plugin", f"{plugin}:only_on") as up:
            up.started()
            assert nodes_of(up, 1) == {"node-01"}
            asked = first.stats()["calls"]["filter"]
            config.write_text(CONFIG % second.url)
            told(up, "Reloaded", 1)
            assert nodes_of(up, 2) == {"node-01"}
            assert first.stats()["calls"]["filter"] == asked
            assert second.stats()["calls"]["filter"] == 2
            plugin.write_text(PLUGIN.replace("node):", "node)") % "02")
            assert "SyntaxError" in told(up, "ReloadRefused", 1)
            assert nodes_of(up, 3) == {"node-01"}
            plugin.write_text(PLUGIN % "02")
            told(up, "Reloaded", 2)
            assert nodes_of(up, 4) == {"node-02"}
