"""Job queues on one machine of equal processors: policies against a published table.

- `policies`: in which order jobs start, and what each must leave free.
- `samples`: which jobs of a trace are played, as the published experiments draw them.
- `sticky_head`, `fresh_head`: two ways to play a sample: as published, and with a new head at each
arrival and end.
- `schedule`: when each job started, and the figures of it.
- `lublin`: traces drawn from the model of Lublin and Feitelson.
- `published`: the published table, and which traces it is about.
- `experiment`: everything that one command plays; `report`: its table.
"""
