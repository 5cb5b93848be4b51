"""When waiting pods start: run times, and roll-outs of a queue from now on; pure.

- `known_ends`: the end and the run time that a pod and its Job declare.
- `run_classes`: which pods have run times alike. `sketch` counts run times, `run_time_book` learns
them by class, `laws` draws from them, and `run_time_file` carries them over a restart.
- `rollout` lets a queue go on with drawn run times; `queue_model` is its start.
- `intervals` makes an interval of the starts, and `track_record` counts how often intervals held.
- `start_observer` takes notice of the pods of a scheduler.
- `answer`: the estimate as data and as a sentence.

Does not belong here: reading a scheduler's state (`moorage.forecast`).
"""
