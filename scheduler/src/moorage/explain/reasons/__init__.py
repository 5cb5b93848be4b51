"""What each code of the vocabulary means: what it is, how to see it, how to fix it, an example.

`texts` has the type and the one table; `before_nodes`, `about_nodes` and `about_others` are its
parts. ``moorage reason`` and the pages of docs/reference/reasons are made from the table.
"""
