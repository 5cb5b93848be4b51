"""Kinds of custom resources: one version of a definition, read as the rules of a kind.

`custom_kind` puts the kind together. `validation` and `formats` check objects by the schema of the
definition, `shape` and `layout` walk them, `columns` and `json_path` tabulate them. `shipped` has
the definitions that every sandbox starts with. Rules in CEL come from a room above.
"""
