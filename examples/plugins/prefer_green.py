"""Prefer nodes that run on green power; the cleaner, the better.

    moorage up --plugin examples/plugins/prefer_green.py:prefer_green

Nodes carry how many percent of their power is green in the annotation `example.com/green-percent`.
"""

from moorage import plugin


@plugin.score
def prefer_green(pod, node):
    return float(node.annotations.get("example.com/green-percent", 0))
