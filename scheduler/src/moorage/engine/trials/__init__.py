"""Trials: a failed search lent to PostFilter plugins, which may take pods off rows.

`what_if` is the value that a plugin is lent (``framework.what_if``); a trial is on one row with the
pods themselves (`row`), on many rows as sums (`rows`), or on one row as sums (`scalar_trial`).
Every change is undone when a trial ends.
"""
