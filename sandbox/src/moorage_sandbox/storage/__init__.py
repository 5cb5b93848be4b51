"""Where the objects of the embedded API server are kept: the store, its watch log, the journal.

Place in the flow: `moorage_sandbox.apiserver` reads and writes objects in `store`, one `record`
each. Every write goes to `watch_log`, from which watches are answered, and with a data directory to
`journal`: `persistence` lets an answer wait until its writes are on the disk. `reads` notes what a
long call has read, so that it writes only where that still stands.

What belongs here: objects as bytes with a version. What does not belong here: what a kind means,
who may do what, and how long objects live; the API server says so.
"""
