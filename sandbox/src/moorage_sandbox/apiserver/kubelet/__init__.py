"""Questions that an API server asks kubelets: logs, streams into containers, and measurements.

Belongs here: ``pods/log``, ``pods/exec``, ``pods/attach``, ``pods/portforward``,
``proxy`` and the group ``metrics.k8s.io``. A real server passes these calls on to a kubelet or to a
metrics server. No container runs on moorage's nodes, so the answers are made from the stored pods,
and their texts say so.
"""
