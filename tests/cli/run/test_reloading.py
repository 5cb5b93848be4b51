"""Files read again while the scheduler runs: what is noticed, imported anew, taken over or refused.

What a configuration may change alive is in scheduler/tests/service/test_reload.py.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.base.errors import ConfigError
from moorage.cli.run import scheduling
from moorage.cli.run.reloading import Read, Reloading, WatchedFiles, watched_files
from moorage.cli.run.scheduler_options import SchedulerOptions
from moorage.config.load import load_config
from moorage.config.own import LoadedConfiguration
from moorage.framework.containment import Containment
from moorage.plugins.from_outside import with_plugins
from moorage.service.intake.plugin_watch import PluginWatch
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

CONFIG = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
percentageOfNodesToScore: %s
"""
PLUGIN = """from moorage import plugin

@plugin.filter(name="OnlyOn")
def only_on(pod, node):
    return node.name == "%s"
"""


class Reloaded:
    """A virtual cluster whose scheduler reads its configuration and its plugin from files."""

    def __init__(
        self, folder: Path, clock: ManualClock, node: str, meanwhile: Callable[[Path], object]
    ) -> None:
        self.config, self.plugin = folder / "scheduler.yaml", folder / "mine.py"
        self.config.write_text(CONFIG % 50)
        self.plugin.write_text(PLUGIN % node)
        self._references = [f"{self.plugin}:only_on"]
        self._containment = Containment(PluginWatch(60.0, clock))
        files = watched_files(self.config, self._references)
        read = self._read()
        meanwhile(self.config)
        self.given: list[LoadedConfiguration] = [read.file_config]
        nodes = [node_manifest("n1"), node_manifest("n2")]
        self.cluster = VirtualCluster(
            clock, nodes=nodes, config=read.config, registry=read.registry
        )
        self.reloading = Reloading(
            self.cluster.scheduler.parts.reload,
            self._read,
            files,
            self.given.append,
        )

    def _read(self) -> Read:
        given = load_config(self.config)
        known = with_plugins(given, self._references, containment=self._containment)
        return Read(given, known.config, known.registry)

    @property
    def percentage(self) -> int | None:
        return self.cluster.scheduler.parts.reload.config.scheduler.percentage_of_nodes_to_score

    @property
    def counts(self) -> dict[str, int]:
        return dict(self.cluster.scheduler.facts.reloads)


def play(
    folder: Path,
    steps: Callable[[Reloaded], Awaitable[None]],
    meanwhile: Callable[[Path], object] = str,
) -> None:
    clock = ManualClock()

    async def main() -> None:
        reloaded = Reloaded(folder, clock, "n1", meanwhile)
        tasks = aio.TaskOwner()
        async with reloaded.cluster:
            tasks.spawn(reloaded.reloading.run(), name="reloading")
            await steps(reloaded)
            await tasks.cancel_all()

    run_virtual(main(), clock)


def test_a_changed_file_is_taken_over_once_it_stays_the_same(tmp_path: Path) -> None:
    async def steps(reloaded: Reloaded) -> None:
        await aio.sleep(5)
        assert reloaded.counts == {}
        reloaded.config.write_text(CONFIG % "100 # new")
        await aio.sleep(3)
        assert (reloaded.percentage, reloaded.counts) == (100, {"taken over": 1})
        assert len(reloaded.given) == 2
        await aio.sleep(60)
        assert reloaded.counts == {"taken over": 1}

    play(tmp_path, steps)


def test_a_file_that_changed_since_it_was_read_at_the_start_is_taken_over(tmp_path: Path) -> None:
    async def steps(reloaded: Reloaded) -> None:
        assert reloaded.percentage == 50
        await aio.sleep(3)
        assert (reloaded.percentage, reloaded.counts) == (100, {"taken over": 1})

    play(tmp_path, steps, meanwhile=lambda config: config.write_text(CONFIG % "100 # new"))


async def test_files_are_watched_from_before_they_are_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIG % 50)
    taken: list[WatchedFiles] = []

    def read(options: SchedulerOptions) -> LoadedConfiguration:
        assert options.config == config
        (files,) = taken
        assert files.loaded == files.now() != [None]
        raise ConfigError(["enough is known"])

    def watched(config: Path | None, plugins: Sequence[str]) -> WatchedFiles:
        taken.append(watched_files(config, plugins))
        return taken[-1]

    monkeypatch.setattr(scheduling, "watched_files", watched)
    monkeypatch.setattr(scheduling, "configured", read)
    with pytest.raises(ConfigError, match="enough is known"):
        await scheduling.schedule(SchedulerOptions(config=config), ManualClock())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            CONFIG % "many", "scheduler.yaml: percentageOfNodesToScore", id="a wrong type"
        ),
        pytest.param("{", "scheduler.yaml: not YAML", id="a text that is no YAML"),
        pytest.param(CONFIG % 50 + "parallelism: 3\n", "restart it", id="a change of a start"),
        pytest.param("", "scheduler.yaml: cannot read the file", id="no file"),
    ],
)
def test_a_file_at_fault_leaves_the_configuration_in_force(
    text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def steps(reloaded: Reloaded) -> None:
        if text:
            reloaded.config.write_text(text)
        else:
            reloaded.config.unlink()
        await aio.sleep(5)
        assert (reloaded.percentage, reloaded.counts) == (50, {"refused": 1})
        assert len(reloaded.given) == 1

    play(tmp_path, steps)
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("endless", ["a pipe", "a device"])
def test_a_file_that_has_become_endless_leaves_the_configuration_in_force(
    endless: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reading it would stop all decisions: a pipe that nobody fills gives nothing for ever."""

    async def steps(reloaded: Reloaded) -> None:
        reloaded.config.unlink()
        if endless == "a pipe":
            os.mkfifo(reloaded.config)
        else:
            reloaded.config.symlink_to("/dev/zero")
        await aio.sleep(5)
        assert (reloaded.percentage, reloaded.counts) == (50, {"refused": 1})

    play(tmp_path, steps)
    assert "scheduler.yaml: it is no regular file" in capsys.readouterr().err


def test_a_plugin_file_is_imported_again_and_a_broken_one_leaves_the_old_running(
    tmp_path: Path,
) -> None:
    async def steps(reloaded: Reloaded) -> None:
        async def node_of(name: str) -> str:
            await reloaded.cluster.create_objects(pod_manifest(name))
            await reloaded.cluster.until(lambda: bool(reloaded.cluster.node_of(name)))
            return reloaded.cluster.node_of(name)

        assert await node_of("a") == "n1"
        for broken in ("1 / 0", "from moorage import plugin", "def only_on(): pass"):
            reloaded.plugin.write_text(broken)
            reloaded.reloading.reload()
        assert await node_of("b") == "n1"
        # As long as the text before: neither size nor second of the file need differ.
        reloaded.plugin.write_text(PLUGIN % "n2")
        reloaded.reloading.reload()
        assert await node_of("c") == "n2"
        assert reloaded.counts == {"refused": 3, "taken over": 1}

    play(tmp_path, steps)


async def test_each_sighup_reloads() -> None:
    calls: list[str] = []
    reloading = Reloading(object(), object(), WatchedFiles(()), calls.append)  # type: ignore[arg-type]
    done = asyncio.Event()
    reloading.reload = done.set  # type: ignore[method-assign]
    reloading.listen()
    try:
        os.kill(os.getpid(), signal.SIGHUP)
        async with asyncio.timeout(60):
            await done.wait()
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
