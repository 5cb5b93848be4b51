"""The process that answers what-if and capacity for a running scheduler, and what asks it.

- `question` asks, `process` is the program, and `answers` computes.
- `mirrored_state` sends what has changed (`messages`), and `mirror` takes it in.
- `forks` computes on a copy; `body_names` lists the names that a question contains.
"""
