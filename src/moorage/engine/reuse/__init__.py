"""Reuse: answers of plugins kept for the next pod of the same shape; no decision depends on it.

The cycle uses only `answers`. Each cache is one module with one small class. Each class has a key,
follows changed rows, forgets its content, and tells its size in bytes:

- `shapes`: the cached answers for each shape, by the ids of the parts of a pod that plugins read;
- `pre_filters`, `filters`, `scores`: answers at these extension points, for one shape;
- `nominated`: the filter result of one shape beside nominated pods, by priority;
- `rejections`: why no node was found, by shape and priority, until a row changes.

`scalar_filters` follows single rows without arrays, for `filters` and `scores`.
"""
