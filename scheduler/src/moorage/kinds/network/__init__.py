"""Services, their addresses, and the kinds of ``networking.k8s.io`` and ``discovery.k8s.io``."""
