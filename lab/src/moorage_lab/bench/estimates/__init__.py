"""How good estimates of starts are, on a trace of jobs.

- `replay` plays jobs on one node under the scheduler's cycle: when each started.
- `asking` asks for estimates as a scheduler would at the time, and scores them.
- `report`: the figures and their table.
"""
