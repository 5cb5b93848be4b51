"""Measurements and proofs of the scheduler: benchmarks, traces, fault simulation, conformance.

It may import the packages `moorage` and `moorage_sandbox`.
"""
