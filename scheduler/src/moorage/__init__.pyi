from moorage.base.version import __version__ as __version__
from moorage_lab.traces.cluster import Cluster as Cluster
from moorage_lab.traces.in_python import simulate as simulate
from moorage_sandbox.sandbox.in_python import Sandbox as Sandbox

__all__ = ["Cluster", "Sandbox", "__version__", "simulate"]
