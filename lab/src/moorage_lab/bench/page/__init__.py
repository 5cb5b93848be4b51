"""The page of a large cluster, measured: its first answer, and what its viewers cost."""
