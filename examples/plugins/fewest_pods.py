"""Prefer the node with the fewest pods: the vector form, one NumPy expression for all nodes.

    moorage up --plugin examples/plugins/fewest_pods.py:FewestPods

At 5000 nodes it takes below 2 ms, where a function called for each node takes 30.
"""

from moorage import plugin


class FewestPods:
    name = "FewestPods"
    score_reads = plugin.Reads.PODS  # nothing but the pods on the row itself
    shape_parts = ()  # nothing of the pod: so answers are kept until a row changes

    def __init__(self, handle):
        self.snapshot = handle.snapshot

    def score(self, state, pod, view):
        return -view.take(self.snapshot.pod_count)

    def normalize(self, state, pod, raw_n):
        fewest, most = raw_n.max(), raw_n.min()
        return raw_n * 0 + 100 if fewest == most else (raw_n - most) * 100 / (fewest - most)
