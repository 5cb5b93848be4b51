"""Persistent volumes, their claims and classes, and the objects of CSI drivers."""
