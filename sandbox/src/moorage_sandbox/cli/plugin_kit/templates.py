"""The files that ``moorage plugin new`` writes: a plugin for each extension point, and its test.

Every template is run by ``tests/cli/plugin_kit``: its test passes as written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Template
from typing import Final, NamedTuple


class Sample(NamedTuple):
    """A plugin at one extension point.

    Parameters
    ----------
    about
        The plugin in one line, for its docstring.
    code
        Its definition. ``$name`` is the plugin's name, ``$function`` the name of its module.
    test
        The body of a test of its own; "" where the contract check alone tests it.
    function
        Whether it is a decorated function.
    """

    about: str
    code: str
    test: str = ""
    function: bool = False


SAMPLES: Final[Mapping[str, Sample]] = {
    "preEnqueue": Sample(
        "Keep pods with the annotation example.com/hold out of the queue",
        """@plugin.pre_enqueue
def $function(pod):
    if "example.com/hold" in pod.annotations:
        return "the pod is on hold"
    return True
""",
        """    cluster = StillCluster([node("a")], plugins=[PLUGIN])
    assert cluster.gated(pod(annotations={"example.com/hold": "true"})) == "the pod is on hold"
    assert cluster.gated(pod()) == ""
""",
        function=True,
    ),
    "queueSort": Sample(
        "Order the queue by priority, then by the pods' names",
        '''class $name:
    name = "$name"

    def less(self, first, second):
        """Return whether the first pod is tried before the second."""
        return (-first.priority, first.pod.name) < (-second.priority, second.pod.name)
''',
    ),
    "preFilter": Sample(
        "Reject pods that request more than 100 cores, before any node is looked at",
        """class $name:
    name = "$name"

    def pre_filter(self, state, pod, snapshot):
        if pod.requests("cpu") > 100:
            return None, plugin.unresolvable("the pod requests more than 100 cores")
        return None, plugin.SUCCESS
""",
        """    cluster = StillCluster([node("a")], plugins=[PLUGIN])
    assert "requests more than 100 cores" in cluster.message(pod(cpu="101"))
    assert cluster.node_of(pod(cpu="1")) == "a"
""",
    ),
    "filter": Sample(
        "Keep a tenth of each node's cpu free",
        """@plugin.filter
def $function(pod, node):
    if pod.requests("cpu") > node.free("cpu") - node.allocatable("cpu") / 10:
        return "a tenth of the cpu has to stay free"
    return True
""",
        """    cluster = StillCluster([node("a", cpu="4")], plugins=[PLUGIN])
    assert cluster.refused(pod(cpu="3800m")) == {"a": ("a tenth of the cpu has to stay free",)}
    assert cluster.node_of(pod(cpu="3")) == "a"
""",
        function=True,
    ),
    "postFilter": Sample(
        "Be told of pods that fit nowhere, after the other PostFilter plugins found no way",
        """class $name:
    name = "$name"

    def post_filter(self, state, pod, statuses):
        return None, plugin.unschedulable("no way was found for the pod")
""",
    ),
    "preScore": Sample(
        "Compute once for a pod what its scores need: the owner that it names",
        """class $name:
    name = "$name"
    key = plugin.StateKey("$name")

    def pre_score(self, state, pod, view):
        owner = pod.annotations.get("example.com/owner")
        if owner is None:
            return plugin.SKIP
        state.write(self.key, owner)
        return plugin.SUCCESS

    def score_node(self, state, pod, node):
        return 100 if node.labels.get("example.com/owner") == state.read(self.key) else 0
""",
        """    cluster = StillCluster(
        [node("a"), node("b", labels={"example.com/owner": "me"})], plugins=[PLUGIN]
    )
    owned = pod(annotations={"example.com/owner": "me"})
    assert cluster.scores(owned, "$name") == {"a": 0, "b": 100}
""",
    ),
    "score": Sample(
        "Prefer the node with the most free cpu",
        """@plugin.score
def $function(pod, node):
    # Below 0 on an overcommitted node, but a score is 0 to 100.
    return max(0, 100 * node.free("cpu") / node.allocatable("cpu"))
""",
        """    cluster = StillCluster(
        [node("a", cpu="4"), node("b", cpu="4")], plugins=[PLUGIN], pods={"a": [pod(cpu="1")]}
    )
    assert cluster.scores(pod("new"), "$name") == {"a": 75, "b": 100}
""",
        function=True,
    ),
    "reserve": Sample(
        "Count the pods that are on their way to each node",
        '''class $name:
    name = "$name"

    def __init__(self):
        self.on_the_way = {}

    def reserve(self, state, pod, node_name):
        self.on_the_way[node_name] = self.on_the_way.get(node_name, 0) + 1
        return plugin.SUCCESS

    def unreserve(self, state, pod, node_name):
        """Undo `reserve`; called when a later step fails."""
        self.on_the_way[node_name] -= 1
''',
    ),
    "permit": Sample(
        "Let pods wait ten seconds for another plugin before they are bound",
        """@plugin.permit
def $function(pod, node_name):
    if "example.com/wait" in pod.annotations:
        return plugin.Status(plugin.Code.WAIT, ("waiting ten seconds",)), 10
    return True
""",
        function=True,
    ),
    "preBind": Sample(
        "Refuse to bind a pod whose annotation says that its data is not there",
        """@plugin.pre_bind
async def $function(pod, node_name):
    if pod.annotations.get("example.com/data") == "missing":
        return "the data of the pod is missing"
    return True
""",
        function=True,
    ),
    "bind": Sample(
        "Leave every pod to the default binder; replace the answer to bind pods yourself",
        """class $name:
    name = "$name"

    async def bind(self, state, pod, node_name):
        return plugin.SKIP
""",
    ),
    "postBind": Sample(
        "Write an Event about every pod that is bound",
        """class $name:
    name = "$name"

    def __init__(self, handle):
        self.effects = handle.effects

    def post_bind(self, state, pod, node_name):
        note = f"pod {pod.name} was bound to {node_name}"
        self.effects.emit(pod.pod, kind="Normal", reason="Bound", action="Binding", note=note)
""",
    ),
}
"""By extension point, as the configuration spells it."""

_PLUGIN: Final = Template('''"""$about.

    moorage up --plugin $file:$attribute
"""

from moorage import plugin

${gap}$code''')

_TEST: Final = Template('''"""Tests of $file."""

from pathlib import Path

$imports

PLUGIN = f"{Path(__file__).with_name('$file')}:$attribute"


def test_it_keeps_the_contract():
    assert check_contract(PLUGIN).faults == ()
$own''')

_OWN: Final = Template("""

def test_what_it_answers():
$body""")


class Files(NamedTuple):
    """The names and texts of a new plugin and its test."""

    plugin_name: str
    plugin_text: str
    test_name: str
    test_text: str


def files_of(name: str, point: str) -> Files:
    """Return the files of a new plugin.

    Parameters
    ----------
    name
        Name of the plugin, as ``KeepHeadroom`` or ``keep_headroom``.
    point
        One of `SAMPLES`.
    """
    sample = SAMPLES[point]
    function = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()
    class_name = "".join(word[:1].upper() + word[1:] for word in function.split("_"))
    names = {"name": class_name, "function": function}
    code = Template(sample.code).substitute(names)
    file = f"{function}.py"
    attribute = function if sample.function else class_name
    uses_plugin = "plugin." in code
    text = _PLUGIN.substitute(
        about=sample.about, file=file, attribute=attribute, code=code, gap="\n"
    )
    if not uses_plugin:
        text = text.replace("from moorage import plugin\n\n\n", "\n")
    return Files(file, text, f"test_{file}", _test(sample, names, file, attribute))


def _test(sample: Sample, names: Mapping[str, str], file: str, attribute: str) -> str:
    imports = ["from moorage_sandbox.testing import check_contract"]
    own = ""
    if sample.test:
        imports = ["from moorage_sandbox.testing import StillCluster, check_contract, node, pod"]
        own = _OWN.substitute(body=Template(sample.test).substitute(names))
    return _TEST.substitute(file=file, attribute=attribute, imports="\n".join(imports), own=own)
