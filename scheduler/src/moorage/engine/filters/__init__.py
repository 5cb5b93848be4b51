"""Filter: asking the plugins about rows, and the filter result that their answers make.

`asking` runs Filter plugins over a view; `filter_results` holds the result of its rows, and `tally`
counts them; `nominated` judges rows again next to the pods nominated there; `moving` adds pods to
rows of a trial and removes them. Only ``reuse`` keeps answers from one attempt to the next.
"""
