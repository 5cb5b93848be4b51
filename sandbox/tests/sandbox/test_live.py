"""The screens of the live view, whole, at several sizes of the terminal."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from moorage.base.clock import ManualClock
from moorage_sandbox.sandbox.lines import Started
from moorage_sandbox.sandbox.live import LiveView
from moorage_sandbox.sandbox.progress import Progress
from sandbox.tests.sandbox.test_progress import refused, with_status

STARTED = Started("https://127.0.0.1:41234", "/tmp/k", 20, scheduler=True, seed=5)
NO_ROOM = (
    "0/20 nodes are available: 20 Insufficient cpu. preemption: 0/20 nodes are available: "
    "20 No preemption victims found for incoming pod."
)
CLEAR = "\x1b[2J"
HEAD = """\
moorage API server https://127.0.0.1:41234, 20 nodes, scheduler (seed 5)
    export KUBECONFIG=/tmp/k
    kubectl get nodes
ready in 1.23 s
scheduler metrics at https://127.0.0.1:2/metrics (curl -k)
"""
AT_80 = (
    HEAD
    + """
pods  0 pending  0 gated  1 unschedulable  0 bound  30 running  0 finished
30 decisions, 0 a second

default/web-25  running        n1
default/web-26  running        n1
default/web-27  running        n1
default/web-28  running        n1
default/web-29  running        n1
default/giant   unschedulable  0/20 nodes are available: 20 Insufficient cpu.
                               preemption: 0/20 nodes are available: 20 No
                               preemption victims found for incoming pod.

Ctrl-C ends the cluster"""
)
AT_40 = """\
moorage API server
https://127.0.0.1:41234, 20 nodes,
scheduler (seed 5)
    export KUBECONFIG=/tmp/k
    kubectl get nodes
ready in 1.23 s
scheduler metrics at
https://127.0.0.1:2/metrics (curl -k)

pods  0 pending  0 gated  1
unschedulable  0 bound  30 running  0
finished
30 decisions, 0 a second


Ctrl-C ends the cluster"""


def screen(console: Console, out: io.StringIO, view: LiveView, progress: Progress) -> str:
    """Return what the next tick draws, without the cursor's movements and the padding."""
    out.seek(0)
    out.truncate()
    view.tick(progress)
    # The frame before is erased line by line.
    text = out.getvalue().rpartition("\x1b[2K")[2]
    assert max(len(line) for line in text.splitlines()) <= console.width
    return "\n".join(line.rstrip() for line in text.splitlines())


def running(count: int) -> Progress:
    progress = Progress(ManualClock(), lambda _change: None)
    for index in range(count):
        progress.pod_seen(with_status(f"web-{index}", node_name="n1", phase="Running"))
    progress.pod_seen(refused("giant", message=NO_ROOM))
    return progress


def terminal(
    width: int, height: int, started: Started = STARTED
) -> tuple[Console, io.StringIO, LiveView]:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=width, height=height, color_system=None)
    view = LiveView(console)
    view.started(started)
    view.ready(1.234)
    view.serving("https://127.0.0.1:2")
    return console, out, view


@pytest.mark.parametrize(
    ("width", "height", "expected"),
    [
        pytest.param(80, 20, AT_80, id="of 80 columns: reasons wrap, older decisions give way"),
        pytest.param(40, 17, AT_40, id="too small for decisions: the lines to copy stay"),
    ],
)
def test_the_screen_fits_the_size_of_the_terminal(width: int, height: int, expected: str) -> None:
    assert screen(*terminal(width, height), running(30)) == expected
    assert len(expected.splitlines()) < height


def test_the_header_of_an_autoscaled_cluster_counts_its_nodes_now() -> None:
    started = msgspec.structs.replace(STARTED, autoscale="1:200")
    progress = running(30)
    progress.nodes_counted(7)
    lines = screen(*terminal(80, 24, started), progress).splitlines()
    assert lines[:3] == [
        "moorage API server https://127.0.0.1:41234, 7 nodes, autoscaled 1:200, scheduler",
        "(seed 5)",
        "    export KUBECONFIG=/tmp/k",
    ]
    assert len(lines) < 24


def test_a_high_terminal_shows_twenty_decisions() -> None:
    text = screen(*terminal(200, 60), running(30))
    shown = [line.split()[0] for line in text.splitlines() if line.startswith("default/")]
    assert shown == [*(f"default/web-{index}" for index in range(11, 30)), "default/giant"]
    assert NO_ROOM in text


def test_a_pod_that_no_node_takes_stays_on_the_screen() -> None:
    progress = running(0)
    for index in range(199):
        progress.pod_seen(with_status(f"web-{index}", node_name="n1", phase="Running"))
    text = screen(*terminal(80, 20), progress)
    shown = [line.split()[0] for line in text.splitlines() if line.startswith("default/")]
    assert shown == ["default/giant", *(f"default/web-{index}" for index in range(194, 199))]
    text = screen(*terminal(200, 60), progress)
    shown = [line.split()[0] for line in text.splitlines() if line.startswith("default/")]
    assert shown == ["default/giant", *(f"default/web-{index}" for index in range(180, 199))]


def test_the_screen_follows_the_size_of_the_terminal() -> None:
    console, out, view = terminal(200, 60)
    progress = running(30)
    view.message("a part says something")
    view.tick(progress)
    console.size = (80, 20)
    out.seek(0)
    out.truncate()
    view.tick(progress)
    again = out.getvalue()
    assert CLEAR in again
    assert "a part says something" in again.partition(CLEAR)[2]
    assert screen(console, out, view, progress) == AT_80
    assert CLEAR not in out.getvalue()


def test_a_command_too_long_for_the_screen_is_also_printed_whole() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=40, height=30, color_system=None)
    path = "/" + "x" * 60
    LiveView(console).started(Started("https://127.0.0.1:1", path, 1, scheduler=True, seed=5))
    assert out.getvalue().startswith(f"    export KUBECONFIG={path}\n")


def test_the_last_screen_names_pending_pods() -> None:
    _console, out, view = terminal(100, 20)
    view.ended(running(1), settled=False)
    assert f"default/giant  unschedulable  {NO_ROOM[:40]}" in out.getvalue()
    assert "stopped: 2 pods: 1 unschedulable, 1 running; 1 decisions\n" in out.getvalue()


LINK = "http://127.0.0.1:41451/login?token=GvdhKJ38Rpgt-KHpUm3w3FmKlz3Tk-aRdPvixftP3ck"


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        pytest.param(120, [f"page at {LINK} (the link works once)"], id="wide enough"),
        pytest.param(80, ["page, by a link that works once:", LINK], id="the link fits alone"),
        pytest.param(60, ["page: `moorage status` prints its link"], id="the link does not fit"),
    ],
)
def test_the_login_link_is_in_one_line_or_left_out(width: int, lines: list[str]) -> None:
    console, out, view = terminal(width, 40)
    view.page("http://127.0.0.1:41451/login?token=used")
    view.page(LINK)
    drawn = screen(console, out, view, running(0)).splitlines()
    first = next(number for number, line in enumerate(drawn) if line.startswith("page"))
    assert drawn[first : first + len(lines) + 1] == [*lines, ""]


def test_the_first_steps_name_the_pod_that_no_node_takes() -> None:
    started = msgspec.structs.replace(STARTED, example="giant")
    drawn = screen(*terminal(80, 24, started), running(0)).splitlines()
    assert drawn[1:4] == [
        "    export KUBECONFIG=/tmp/k",
        "    kubectl get nodes",
        "    moorage explain pod giant",
    ]
    merged = msgspec.structs.replace(started, context="moorage-blue")
    assert merged.copy_lines == (
        "kubectl --context moorage-blue get nodes",
        "moorage explain pod giant --context moorage-blue",
    )
