"""Keep a share of each node's cpu free for what is not scheduled: a class with arguments.

    moorage up --plugin examples/plugins/keep_headroom.py:KeepHeadroom

Arguments stand in the configuration, and are read as strictly as those of the plugins in the tree:

    pluginConfig:
    - {name: KeepHeadroom, args: {cpuPercent: 25}}
"""

import msgspec

from moorage import plugin


class KeepHeadroomArgs(msgspec.Struct, frozen=True, rename="camel"):
    cpu_percent: int = 10


class KeepHeadroom:
    name = "KeepHeadroom"
    args_type = KeepHeadroomArgs

    def __init__(self, args):
        self.percent = args.cpu_percent

    def filter_node(self, state, pod, node):
        usable = node.allocatable("cpu") * (100 - self.percent) / 100
        if node.requested("cpu") >= usable:
            return plugin.unschedulable(f"less than {self.percent} % of the cpu is free")
        return plugin.SUCCESS

    def events_to_register(self):
        """A pod that was refused is tried again when a pod goes or a node comes or grows."""
        node_changes = plugin.Action.ADD | plugin.Action.UPDATE_NODE_ALLOCATABLE
        return [
            plugin.EventRegistration(plugin.ClusterEvent("Pod", plugin.Action.DELETE)),
            plugin.EventRegistration(plugin.ClusterEvent("Node", node_changes)),
        ]
