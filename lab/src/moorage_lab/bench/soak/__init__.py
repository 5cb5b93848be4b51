"""A soak: hours of mixed load with several schedulers, and what must hold at its end."""
