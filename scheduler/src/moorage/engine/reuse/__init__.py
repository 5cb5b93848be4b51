"""Reuse: answers of plugins kept for the next pod of the same shape; no decision depends on it.

The cycle uses only `answers`. `shapes` finds the caches of a pod's shape by the ids of the parts of
a pod that plugins read, and hands each cache the rows that changed. Each cache is one module with
one small class, a `framework.caches.Cache`:

- `pre_filters`, `filters`, `scores`: answers at these extension points, for one shape;
- `nominated`: the filter result of one shape next to nominated pods, by priority;
- `rejections`: why no node was found, by priority and group, until a row changes.

`scalar_filters` follows single rows without arrays, for `filters` and `scores`.
"""
