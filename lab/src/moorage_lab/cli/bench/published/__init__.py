"""Benchmarks that repeat published experiments: `fgd`, `queues`; `seeds` is an option of both."""
