"""The cluster on disk: a snapshot of every object, a log of the later writes, and a mark.

Belongs here: the form of these files, writing and reading them, finding out what is damaged, and
salvaging the rest. `moorage_sandbox.storage.persistence` decides when a group of writes is
committed; `moorage_sandbox.sandbox.data_directory` has the directory. No module here knows an event
loop.

The files of generation N: ``snapshot-N`` holds every object as it was when ``log-N`` began, and
``log-N`` one group of writes for each commit. Each group carries a checksum over its own content
and over the group before, so the files form one chain. ``mark`` is replaced as a whole. It says
which files belong together, and the greatest resourceVersion that may have been given out.
``progress`` is overwritten after each commit, without waiting for the disk. It says how long the
chain is.

Notes
-----
A watch's history is not kept: after a restart a watch that reaches further back is answered 410,
as by an API server whose watch cache is new, and its client lists again.
"""
