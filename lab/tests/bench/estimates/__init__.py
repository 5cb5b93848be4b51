"""Tests of the benchmark of estimates."""
