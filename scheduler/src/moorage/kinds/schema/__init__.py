"""The rules that the facts of the API give for objects: types, unknown fields and merging.

Place in the flow: `openapi` renders the definitions for clients. `check` refuses wrong types and
names unknown fields. `patch_strategic` takes its merge keys from the definitions.
"""
