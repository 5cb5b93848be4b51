"""What people do with the page of a sandbox, in a real browser.

One sandbox of twenty nodes with its first thirty pods; one of them, ``giant``, fits no node.
Left out: large clusters (`test_large`), who gets in (``scheduler/tests/dashboard/test_guard``).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from sandbox.tests.sandbox.process import Up
from tests.browser.acting import hold, pod, settle, typed
from tests.browser.install import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

VIEWS = (
    "cluster",
    "cluster?node=node-05",
    "cluster?as=table",
    "overview",
    "workloads",
    "workloads?as=pods",
    "queue",
    "pod",
    "pod/default/giant",
    "decisions",
    "groups",
    "what-if",
    "plugins",
    "time",
    "no-such-view",
)


def test_every_node_is_on_the_first_picture(page: Any) -> None:
    page.goto(f"{page.moorage_url}/cluster")
    page.wait_for_selector("#tiles[data-painted='20']")
    page.get_by_text("20 nodes").first.wait_for()


def test_only_the_nodes_of_one_domain_are_shown(page: Any) -> None:
    page.goto(f"{page.moorage_url}/cluster")
    page.wait_for_selector("#tiles[data-painted='20']")
    page.get_by_label("Only").select_option("b")
    page.wait_for_selector("#tiles[data-painted='7']")
    page.get_by_text("on 7 nodes").wait_for()
    assert page.url.endswith("/cluster?within=b")


def test_a_node_is_chosen_by_keys_and_told_in_full(page: Any) -> None:
    page.goto(f"{page.moorage_url}/cluster")
    page.wait_for_selector("#tiles[data-painted]")
    page.locator("#tiles").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**/cluster?node=node-*")
    page.keyboard.press("ArrowRight")
    page.locator("aside.detail h2").wait_for()
    page.keyboard.press("Escape")
    page.wait_for_url("**/cluster")


def tab_to(page: Any, name: str) -> None:
    """Press Tab until something of this name, or with this label, has the focus."""
    for _ in range(TABS_MAX):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED) == name:
            return
    raise AssertionError(f"{TABS_MAX} times Tab do not lead to {name}")


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: vast, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: vast}}
  template:
    metadata: {labels: {app: vast}}
    spec: {containers: [{name: main, image: nginx, resources: {requests: {cpu: "99"}}}]}
"""
TABS_MAX = 80
FOCUSED = """() => {
  const at = document.activeElement;
  return (at.labels?.[0] ?? at).textContent.trim();
}"""


def test_the_page_is_used_by_keyboard_alone(page: Any) -> None:
    page.goto(f"{page.moorage_url}/cluster")
    page.wait_for_selector("#tiles[data-painted]")
    tab_to(page, "To the view")
    tab_to(page, "Queue")
    page.keyboard.press("Enter")
    page.wait_for_url("**/queue")
    tab_to(page, "Find")  # the focus goes on from the view that was opened
    page.keyboard.type("typed-")
    page.wait_for_url("**/queue?find=typed-")
    tab_to(page, "Pods")
    page.keyboard.press("Control+A")
    page.keyboard.type("1")
    tab_to(page, "Create pods")
    page.keyboard.press("Enter")
    page.get_by_role("form", name="Create pods").get_by_text("done").wait_for()


def test_every_region_control_and_table_has_a_name(page: Any) -> None:
    """A screen reader tells landmarks, controls and tables by their names."""
    unnamed = """() => [...document.querySelectorAll("nav, form, table, section, aside, .scroll")]
      .filter((each) => !(each.ariaLabel || each.getAttribute("aria-labelledby") || each.caption))
      .map((each) => each.outerHTML.slice(0, 80))"""
    for view in VIEWS:
        page.goto(f"{page.moorage_url}/{view}")
        settle(page)
        assert page.evaluate(unnamed) == [], view
        assert page.locator("h1").count() == 1
        assert page.locator("main").count() == 1


def test_the_overview_says_what_waits_and_why_what_is_full_and_what_changed(page: Any) -> None:
    page.goto(f"{page.moorage_url}/overview")
    waiting = page.get_by_role("region", name="Waiting")
    waiting.get_by_role("link", name="default/giant").wait_for()
    assert "InsufficientCPU" in waiting.inner_text()
    page.get_by_role("img", name="Waiting: ").wait_for()
    assert "pods bound" in page.locator(".recent").inner_text()
    waiting.get_by_role("link", name="default/giant").click()
    page.wait_for_url("**/pod/default/giant")


def test_workloads_are_found_by_what_is_known_of_their_pods(page: Any) -> None:
    page.goto(f"{page.moorage_url}/workloads")
    page.get_by_label("Find").fill("InsufficientCPU")
    page.wait_for_url("**/workloads?find=InsufficientCPU")
    table = page.locator("main table")
    page.get_by_text("1 workload", exact=True).wait_for()
    assert "giant" in table.inner_text()
    page.get_by_label("Find").fill("node-05")
    page.get_by_label("Shown as").select_option("pods")
    page.get_by_role("link", name="node-05").first.wait_for()
    nodes = table.locator("tbody tr td:nth-child(3)").all_inner_texts()
    assert set(nodes) == {"node-05"}


def test_a_pod_goes_through_the_lanes_to_a_node(page: Any, up: Up) -> None:
    page.goto(f"{page.moorage_url}/queue")
    page.wait_for_selector("[data-lane=gated]")
    gated = pod("traveller", schedulingGates=[{"name": "example.com/wait"}])
    typed(up, "apply", "-f", "-", stdin=gated)
    page.locator("[data-lane=gated] [data-pod='default/traveller']").wait_for()
    typed(up, "delete", "pod", "traveller")
    typed(up, "apply", "-f", "-", stdin=pod("traveller"))
    page.locator(".landed [data-pod='default/traveller']").wait_for()
    page.locator("[data-lane=gated] [data-pod='default/traveller']").wait_for(state="detached")


def test_the_page_of_a_pod_that_fits_no_node_tells_cause_and_suggestion(page: Any) -> None:
    page.goto(f"{page.moorage_url}/pod/default/giant")
    sentence = page.locator(".sentence")
    sentence.wait_for()
    assert "never fits here, not even on an empty node, because of cpu" in sentence.inner_text()
    way = page.locator(".suggestions li").first
    assert "cpu instead of 500" in way.inner_text()
    assert page.locator(".heat .no").count() > 0


def test_a_script_in_the_name_of_an_object_stays_text(page: Any, up: Up) -> None:
    gate = "<img-src=x-onerror=alert(1)>"
    typed(up, "apply", "-f", "-", stdin=pod("script", priorityClassName="system-node-critical"))
    page.goto(f"{page.moorage_url}/queue?find={SCRIPT}")
    page.wait_for_selector("[data-lane=active]")
    assert page.locator("input[type=search]").input_value() == SCRIPT
    page.goto(f"{page.moorage_url}/pod/default/{gate.replace('<', '%3C').replace('>', '%3E')}")
    page.locator("h2.name").wait_for()
    assert page.locator("h2.name").inner_text() == f"default/{gate}"
    assert page.evaluate("document.body.dataset.hit") is None
    assert page.locator("main img").count() == 0


def test_pods_are_created_by_the_form_of_a_sandbox(page: Any) -> None:
    page.goto(f"{page.moorage_url}/queue")
    form = page.get_by_role("form", name="Create pods")
    form.get_by_label("Pods").fill("3")
    form.get_by_role("button").click()
    form.get_by_text("done").wait_for()
    page.locator(".landed [data-pod^='default/sample-']").first.wait_for()


def test_a_node_is_cordoned_and_opened_again(page: Any) -> None:
    page.goto(f"{page.moorage_url}/cluster?node=node-05")
    page.get_by_role("button", name="Cordon", exact=True).click()
    page.locator("aside").get_by_text("cordoned").wait_for()
    page.get_by_role("button", name="Uncordon").click()
    page.get_by_role("button", name="Cordon", exact=True).wait_for()


def test_the_table_of_nodes_says_what_the_tiles_show(page: Any) -> None:
    page.goto(f"{page.moorage_url}/cluster?as=table&resource=memory")
    page.locator("tbody tr").nth(19).wait_for()
    assert "of 32 GiB" in page.locator("tbody tr").first.inner_text()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", [1280, 390])
def test_no_view_is_wider_than_the_screen(page: Any, view: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{page.moorage_url}/{view}")
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_no_serious_fault_of_accessibility(
    page: Any, installed: Browser, view: str, scheme: str
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{page.moorage_url}/{view}")
    settle(page)
    hold(page, moving=True)
    # The page lets no script in; the test's own script comes by the debugging protocol.
    page.evaluate(installed.axe.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [
        (each["id"], [node["html"] for node in each["nodes"]][:3])
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_the_suggestion_is_applied_and_the_pod_gets_a_node(page: Any) -> None:
    page.goto(f"{page.moorage_url}/pod/default/giant")
    page.get_by_role("button", name="Apply").first.click()
    page.locator(".outcome.bind").first.wait_for()
    page.goto(f"{page.moorage_url}/queue")
    page.locator(".landed [data-pod='default/giant']").wait_for()


def test_what_if_tells_where_pods_would_start(page: Any) -> None:
    page.goto(f"{page.moorage_url}/what-if")
    form = page.get_by_role("form", name="What if")
    form.get_by_label("Change").select_option("nodes")
    form.get_by_label("Change").select_option("pods")
    form.get_by_role("button").click()
    page.locator("#what-if-sum").get_by_text("3 pods would start").wait_for()
    page.get_by_role("row", name="default/what-if-1").wait_for()


def test_what_if_takes_manifests(page: Any) -> None:
    page.goto(f"{page.moorage_url}/what-if?change=manifests")
    form = page.get_by_role("form", name="What if")
    form.get_by_label("YAML").fill("kind: Deployment\nmetadata: {name: api}\n")
    form.get_by_role("button").click()
    page.get_by_text("Deployment without apiVersion").wait_for()
    two_pods = f"{pod('in-a-box', cpu='1')}\n---\n{pod('too-big', cpu='99')}"
    form.get_by_label("YAML").fill(f"# only one of them fits\n{two_pods}")
    form.get_by_role("button").click()
    page.locator("#what-if-sum").get_by_text("1 pod would start").wait_for()
    page.get_by_role("row", name="default/in-a-box").get_by_text("starts").wait_for()
    assert page.url.endswith("/what-if?change=manifests")


def test_what_if_folds_pods_of_one_owner(page: Any) -> None:
    page.goto(f"{page.moorage_url}/what-if?change=manifests")
    form = page.get_by_role("form", name="What if")
    form.get_by_label("YAML").fill(DEPLOYMENT)
    form.get_by_role("button").click()
    page.locator("#what-if-sum").get_by_text("2 begin to wait").wait_for()
    row = page.locator("tr", has_text="default/deployment/vast: 2 pods")
    row.get_by_text("begins to wait: 0/20 nodes are available").wait_for()


def test_what_if_counts_gpus(page: Any) -> None:
    page.goto(f"{page.moorage_url}/what-if?change=pods&count=2")
    form = page.get_by_role("form", name="What if")
    form.get_by_label("GPUs of each").fill("1")
    form.get_by_role("button").click()
    page.locator("#what-if-sum").get_by_text("2 begin to wait").wait_for()
    page.get_by_role("row", name="default/what-if-1").get_by_text("nvidia.com/gpu").wait_for()
    assert page.get_by_role("button", name="Carry it out").count() == 0


def test_a_workload_says_what_keeps_its_pods_and_what_would_help(page: Any, up: Up) -> None:
    template = {
        "metadata": {"labels": {"app": "huge"}},
        "spec": json.loads(pod("x", cpu="99"))["spec"],
    }
    workload = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "huge", "namespace": "default"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "huge"}}, "template": template},
    }
    typed(up, "apply", "-f", "-", stdin=json.dumps(workload))
    page.goto(f"{page.moorage_url}/workloads?find=huge")
    page.get_by_role("cell", name="InsufficientCPU").wait_for()
    page.get_by_role("link", name="what would help").click()
    page.wait_for_url("**/workloads/default/replicaset/huge")
    page.locator(".object .sentence").get_by_text("2 are pending").wait_for()
    page.locator(".object .suggestions").get_by_text("request").first.wait_for()
    page.goto(f"{page.moorage_url}/workloads")
    page.get_by_label("Label").fill("app in (huge)")
    page.get_by_label("Label").press("Enter")
    page.locator(".object .sentence").get_by_text("2 are pending").wait_for()
    page.get_by_label("Label").fill("app in (")
    page.get_by_label("Label").press("Enter")
    page.locator(".object .empty").wait_for()
    typed(up, "delete", "replicaset", "huge")


def test_what_if_names_the_flags_that_a_drain_needs(page: Any, up: Up) -> None:
    """The page does not send the pods of a node, and a scheduler drops volumes of kind emptyDir."""
    scratch = json.loads(pod("scratch", cpu="1m"))
    scratch["spec"] |= {"nodeName": "node-07", "volumes": [{"name": "v", "emptyDir": {}}]}
    typed(up, "apply", "-f", "-", stdin=json.dumps(scratch))
    page.goto(f"{page.moorage_url}/what-if?change=drain&node=node-07")
    page.get_by_role("form", name="What if").get_by_role("button").click()
    needed = page.get_by_text("kubectl drain needs --delete-emptydir-data")
    needed.get_by_text("default/scratch").wait_for()


def test_three_nodes_are_tried_and_then_what_was_told_happens(page: Any, up: Up) -> None:
    for name in ("wide-1", "wide-2"):
        typed(up, "apply", "-f", "-", stdin=pod(name, cpu="12"))
    page.goto(f"{page.moorage_url}/queue")
    for name in ("wide-1", "wide-2"):
        page.locator(f"[data-lane=unschedulable] [data-pod='default/{name}']").wait_for()
    page.goto(f"{page.moorage_url}/what-if")
    form = page.get_by_role("form", name="What if")
    form.get_by_label("Change").select_option("nodes")
    form.get_by_label("How many").fill("3")
    form.get_by_label("cpu of each").fill("16")
    form.get_by_role("button").click()
    page.locator("#what-if-sum").get_by_text("2 pods would start").wait_for()
    assert page.url.endswith("/what-if?change=nodes&count=3&cpu=16&memory=32Gi")
    page.get_by_role("row", name="default/wide-1").get_by_text("starts").wait_for()
    page.get_by_role("button", name="Carry it out").click()
    page.goto(f"{page.moorage_url}/cluster")
    page.wait_for_selector("#tiles[data-painted='23']")
    for name in ("wide-1", "wide-2"):
        page.goto(f"{page.moorage_url}/pod/default/{name}")
        page.locator(".sentence").get_by_text("bound to node-2").wait_for()
    page.goto(f"{page.moorage_url}/what-if?change=nodes&count=3&cpu=16&memory=32Gi")
    assert page.get_by_label("cpu of each").input_value() == "16"


SCRIPT = '<img src=x onerror="document.body.dataset.hit=1"><script>1</script>'


def test_a_script_in_an_event_stays_text(page: Any, up: Up) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "script", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "giant"},
        "reason": "Tried",
        "message": SCRIPT,
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    typed(up, "apply", "-f", "-", stdin=json.dumps(event))
    page.goto(f"{page.moorage_url}/pod/default/giant")
    page.locator(".events .reason").get_by_text(SCRIPT).wait_for()
    assert page.evaluate("document.body.dataset.hit") is None
    assert page.locator("main img").count() == 0


def test_the_quota_of_a_namespace_is_told(page: Any, up: Up) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "bounds", "namespace": "kube-public"},
        "spec": {"hard": {"pods": "7"}},
    }
    typed(up, "apply", "-f", "-", stdin=json.dumps(quota))
    page.goto(f"{page.moorage_url}/groups")
    row = page.locator(".quotas").get_by_role("row", name="kube-public/bounds")
    row.get_by_text("7", exact=True).wait_for()


def test_a_lost_connection_is_told_and_comes_back(page: Any) -> None:
    page.route("**/page/v1/changes*", lambda route: route.abort())
    page.goto(f"{page.moorage_url}/cluster")
    banner = page.get_by_role("alert")
    banner.get_by_text("Not connected").wait_for()
    page.unroute("**/page/v1/changes*")
    banner.wait_for(state="detached")
