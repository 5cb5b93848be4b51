"""The rules by which an API server would refuse, change or hold back objects of a model.

- `admission` is the chain for a new object: quotas and limit ranges (`bounds`, `quotas`), and
  admission policies (`policies`).
- `budgets` says which evictions are allowed.
"""
