"""Keep pods off spot nodes, unless they say that they can bear to lose their node.

moorage up --plugin examples/plugins/no_spot.py:no_spot
"""

from moorage import plugin


@plugin.filter
def no_spot(pod, node):
    if node.labels.get("example.com/spot") == "true" and pod.labels.get("interruptible") != "true":
        return "spot node, and the pod is not interruptible"
    return True
