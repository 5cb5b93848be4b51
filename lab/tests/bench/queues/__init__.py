"""Tests of the benchmark of job queues."""
