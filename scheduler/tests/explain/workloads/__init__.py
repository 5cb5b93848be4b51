"""Tests of `moorage.explain.workloads`."""
