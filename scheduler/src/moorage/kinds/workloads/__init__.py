"""Kinds that own pods or act on owners: group ``apps``, jobs, autoscalers, budgets, pod groups."""
