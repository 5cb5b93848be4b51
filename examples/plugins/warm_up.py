"""Give a node time to get ready before a pod is bound to it: PreBind, which may wait.

    moorage up --plugin examples/plugins/warm_up.py:WarmUp

Waiting holds up this pod only; the scheduler goes on deciding about others. The pod's place is
taken meanwhile.
"""


class WarmUp:
    name = "WarmUp"

    def __init__(self, handle):
        self.client = handle.client

    async def pre_bind(self, state, pod, node_name):
        seconds = float(pod.annotations.get("example.com/warm-up-seconds", 0))
        if seconds > 60:
            return "nobody warms up for more than a minute"
        await self.client.sleep(seconds)
        return True
