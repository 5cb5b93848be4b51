"""The metrics of a running scheduler, and the records of its attempts.

Belongs here: the table of metrics (`catalogue`) and the numbers behind it (`series`), which are
cheap enough to be written on a pod's way. The queue, the attempts and the calls write their numbers
in `queue_facts`, `attempts` and `calls`; `exposition` and `resources` write the page for
Prometheus. `records` keeps what each attempt found, for explaining. The room reads; it holds no
way to write to the API.
"""
