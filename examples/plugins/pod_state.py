"""Prefer nodes that pods are leaving to nodes that other pods are nominated to.

    moorage up --plugin examples/plugins/pod_state.py:PodState

The plugin PodState of kubernetes-sigs/scheduler-plugins, with its scores: terminating pods minus
nominated pods, spread over 0 to 100.
"""

from moorage import plugin


class PodState:
    name = "PodState"
    # Nominations change without the row: no answer is kept.
    capabilities = plugin.Capabilities()

    def __init__(self, handle):
        self.snapshot = handle.snapshot

    def score_node(self, state, pod, node):
        terminating = [each for each in node.pods if each.pod.metadata.deletion_timestamp]
        return len(terminating) - len(self.snapshot.nominations.get(node.name, ()))

    def normalize(self, state, pod, raw_n):
        least, most = raw_n.min(), raw_n.max()
        return raw_n * 0 if least == most else (raw_n - least) * 100 // (most - least)
