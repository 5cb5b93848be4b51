"""The line at the start of ``moorage run``: server, profiles, plugins, and who leads."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from moorage.base.verbosity import V0
from moorage.cli.run.start_line import tell_start
from moorage.config.load import parse_config
from moorage.plugins.from_outside import with_plugins

SECOND = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: batch
  plugins:
    multiPoint:
      enabled: [{name: PreemptionToleration}]
      disabled: [{name: ImageLocality}, {name: DefaultPreemption}]
"""


def elector(*, leading: bool, holder: str = "") -> Any:
    tried = asyncio.Event()
    tried.set()
    return SimpleNamespace(tried=tried, leading=leading, holder=holder, lease="kube-system/mine")


@pytest.mark.parametrize(
    ("config", "elector", "told"),
    [
        pytest.param(
            "",
            None,
            'profiles="default-scheduler" plugins="default-scheduler: 20 (default)" '
            'leaderElection="off"',
            id="the defaults, without leader election",
        ),
        pytest.param(
            SECOND,
            elector(leading=True),
            'profiles="default-scheduler, batch" plugins="default-scheduler: 20 (default); batch: '
            '19 (default +PreemptionToleration -DefaultPreemption -ImageLocality)" '
            'leaderElection="leads by lease kube-system/mine"',
            id="a profile that differs from the default, and a leader",
        ),
        pytest.param(
            "",
            elector(leading=False, holder="other"),
            'profiles="default-scheduler" plugins="default-scheduler: 20 (default)" '
            'leaderElection="waits for lease kube-system/mine, held by other"',
            id="another process holds the lease",
        ),
        pytest.param(
            "",
            elector(leading=False),
            'profiles="default-scheduler" plugins="default-scheduler: 20 (default)" '
            'leaderElection="waits for lease kube-system/mine"',
            id="the lease could not be read yet",
        ),
    ],
)
def test_the_line_names_server_profiles_plugins_and_leader(
    caplog: pytest.LogCaptureFixture, config: str, elector: Any, told: str
) -> None:
    text = config or SECOND.partition("profiles:")[0]
    known = with_plugins(parse_config(text, source="x"))
    scheduler = cast("Any", SimpleNamespace(elector=elector))
    with caplog.at_level(V0, logger="moorage"):
        asyncio.run(tell_start(scheduler, "https://s:1", known, seed=7, records="none"))
    assert [each.getMessage() for each in caplog.records] == [
        f'"Scheduling" server="https://s:1" {told} seed=7 records="none"'
    ]
