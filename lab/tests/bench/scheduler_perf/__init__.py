"""Tests of the workload files of scheduler_perf."""
