"""What watches a scheduler in production: alerts, recording rules and dashboards, as data.

`promql` builds queries from names of the catalogue of metrics. `alerts` holds the rules,
`rules_file` writes them and their runbook, and `dashboards` holds the panels.
``tools.pages.generate`` writes the files into ``deploy/chart/watching``.
"""
