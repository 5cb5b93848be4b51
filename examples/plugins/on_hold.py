"""Hold pods until an annotation goes away: a gate in front of the queue.

    moorage up --plugin examples/plugins/on_hold.py:on_hold

A held pod costs nothing: it is not in the queue. Any change of the pod asks again:

    kubectl annotate pod NAME example.com/hold-
"""

from moorage import plugin


@plugin.pre_enqueue
def on_hold(pod):
    reason = pod.annotations.get("example.com/hold")
    return f"on hold: {reason}" if reason else True
