from moorage.base.version import __version__ as __version__
from moorage.sandbox.in_python import Sandbox as Sandbox
from moorage.traces.cluster import Cluster as Cluster
from moorage.traces.in_python import simulate as simulate

__all__ = ["Cluster", "Sandbox", "__version__", "simulate"]
