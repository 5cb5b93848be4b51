"""Jobs: the pods of a Job, its indexes, and the steps of its controller."""
