"""What a picture of nodes shows: counted first, then drawn."""

from __future__ import annotations

import pytest

from moorage.base.errors import UsageError
from moorage_sandbox.pictures.bars import Bar, Panel, Part, draw, natural, panel, resources_in_use
from moorage_sandbox.testing.builders import node, pod

NODES = [
    node("n10", cpu="4", memory="8Gi"),
    node("n2", cpu="2", memory="8Gi"),
]
PODS = [
    pod("a", cpu="500m", memory="2Gi", node_name="n2", labels={"app": "web"}),
    pod("b", cpu="1", node_name="n2", labels={"app": "db"}),
    pod("waits", cpu="1"),
    pod("best-effort", node_name="n10"),
]


def app(each):
    return each.metadata.labels.get("app", "none")


@pytest.mark.parametrize(
    ("resource", "unit", "bars", "summary"),
    [
        pytest.param(
            "cpu",
            "cores",
            (
                Bar("n2", 2.0, (Part("web", 0.5), Part("db", 1.0))),
                Bar("n10", 4.0, ()),
            ),
            "25 % in use, 1 of 2 nodes untouched",
            id="cpu in cores, nodes in the natural order of their names, waiting pods left out",
        ),
        pytest.param(
            "memory",
            "GiB",
            (Bar("n2", 8.0, (Part("web", 2.0),)), Bar("n10", 8.0, ())),
            "12 % in use, 1 of 2 nodes untouched",
            id="memory in GiB",
        ),
        pytest.param(
            "nvidia.com/gpu",
            "",
            (Bar("n2", 0.0, ()), Bar("n10", 0.0, ())),
            "0 % in use, 0 of 0 nodes untouched",
            id="a resource no node has",
        ),
    ],
)
def test_a_panel_sums_requests_by_node_and_group(resource, unit, bars, summary):
    found = panel(NODES, PODS, resource, title="t", group_of=app)
    assert found == Panel("t", resource, unit, bars)
    assert found.summary == summary


def test_node_names_are_sorted_in_natural_order():
    assert sorted(["n10", "n2", "n", "m11"], key=natural) == ["m11", "n", "n2", "n10"]


def test_resources_in_use_are_those_of_bound_pods():
    asked = {"requests": {"cpu": "1", "vendor.io/x": "1"}}
    extra = pod("x", node_name="n2", containers=[{"name": "c", "image": "i", "resources": asked}])
    waiting = {"requests": {"vendor.io/y": "1"}}
    other = pod("y", containers=[{"name": "c", "image": "i", "resources": waiting}])
    assert resources_in_use(NODES, [*PODS, extra, other]) == ["cpu", "memory", "vendor.io/x"]


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_the_same_cluster_gives_the_same_bytes(tmp_path, suffix):
    panels = [[panel(NODES, PODS, name, title="t", group_of=app) for name in ("cpu", "memory")]]
    written = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}{suffix}"
        draw(panels, path)
        written.append(path.read_bytes())
    assert written[0] == written[1]
    assert written[0][:4] in (b"<?xm", b"\x89PNG")


def test_an_empty_cluster_can_be_drawn(tmp_path):
    empty = [[panel(NODES, [], "cpu", title="", group_of=app)]]
    draw(empty, tmp_path / "x.svg")
    assert b"0 % in use, 2 of 2 nodes untouched" in (tmp_path / "x.svg").read_bytes()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param(
            "x.gif", "the suffix says the format, one of .svg, .png, .pdf", id="unknown format"
        ),
        pytest.param("no/such/x.svg", "cannot write .*: No such file", id="no such directory"),
    ],
)
def test_a_target_that_cannot_be_drawn_to_is_refused(tmp_path, name, message):
    with pytest.raises(UsageError, match=message):
        draw([[panel(NODES, [], "cpu", title="", group_of=app)]], tmp_path / name)


@pytest.fixture
def axes_class():
    """Import matplotlib when a test wants it: that takes longer than all of the other imports."""
    from matplotlib.axes import Axes

    return Axes


def test_a_panel_is_drawn_as_one_artist(tmp_path, monkeypatch, axes_class):
    drawn = []
    add = axes_class.add_collection

    def counted(axes, collection, *given, **named):
        drawn.append(len(collection.get_paths()))
        return add(axes, collection, *given, **named)

    monkeypatch.setattr(axes_class, "add_collection", counted)
    nodes = [node(f"n{index}", cpu="4") for index in range(40)]
    pods = [pod(f"p{index}", cpu="1", node_name=f"n{index % 40}") for index in range(100)]
    draw([[panel(nodes, pods, "cpu", title="", group_of=app)]], tmp_path / "x.svg")
    assert drawn == [140]


@pytest.mark.parametrize(
    ("count", "widths"),
    [
        pytest.param(150, {0.5, 0.6}, id="outlined while there is room"),
        pytest.param(151, {0.0}, id="narrow bars have no outlines"),
    ],
)
def test_outlines_do_not_cover_colours(tmp_path, monkeypatch, axes_class, count, widths):
    found = set()
    add = axes_class.add_collection

    def noted(axes, collection, *given, **named):
        found.update(collection.get_linewidths())
        return add(axes, collection, *given, **named)

    monkeypatch.setattr(axes_class, "add_collection", noted)
    nodes = [node(f"n{index}", cpu="4") for index in range(count)]
    panels = [[panel(nodes, [pod("p", cpu="1", node_name="n1")], "cpu", title="", group_of=app)]]
    draw(panels, tmp_path / "x.png")
    assert found == widths
