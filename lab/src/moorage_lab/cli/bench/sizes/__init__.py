"""Benchmarks that compare sizes: `growth` of a pod's time, and `tails` of slow decisions."""
