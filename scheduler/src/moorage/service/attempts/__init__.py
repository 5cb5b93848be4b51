"""Attempts: a pod leaves the queue, the engine decides, and the outcome goes on.

`pump` pops pods; `extended_attempts` runs those that extenders are asked about; `outcomes` hands
decisions on, and `failure` puts a pod back and writes why. The logs and metrics of attempts are
here too. Does not belong here: attempts about groups (`groups`), writes (`binding`).
"""
