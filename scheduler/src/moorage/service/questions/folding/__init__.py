"""Pods that wait alike as one row: the function in `folds`, the answer in `folded_queue`."""
