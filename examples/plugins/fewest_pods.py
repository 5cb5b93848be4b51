"""Prefer the node with the fewest pods: the vector form, one NumPy expression for all nodes.

    moorage up --plugin examples/plugins/fewest_pods.py:FewestPods

At 5000 nodes it takes below 2 ms, where a function called for each node takes 30.
"""

from moorage import plugin


class FewestPods:
    name = "FewestPods"
    # Only the pods on a row count, and nothing of the pod: answers are kept until a row changes.
    capabilities = plugin.Capabilities(score_reads=plugin.Reads.PODS, shape_parts=())

    def __init__(self, handle):
        self.snapshot = handle.snapshot

    def score(self, state, pod, view):
        return -view.take_rows(self.snapshot.pod_count)

    def normalize(self, state, pod, raw_n):
        fewest, most = raw_n.max(), raw_n.min()  # raw scores are negated counts
        return raw_n * 0 + 100 if fewest == most else (raw_n - most) * 100 / (fewest - most)
