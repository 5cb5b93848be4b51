"""The last hour of a scheduler in numbers: `moments` keeps them, `question` answers with them.

`extended_use` counts the GPUs in use, shares included.

The page draws its curves from these. Prometheus has the same numbers for longer, where it runs.

Does not belong here: decisions one by one (`moorage.observe.records`), metrics
(`moorage.service.process.metrics`).
"""
