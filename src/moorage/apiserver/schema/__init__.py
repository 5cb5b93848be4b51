"""One description of the served API's fields, from which everything else is derived.

Place in the flow: `openapi` renders it for clients, `check` refuses wrong types and names
unknown fields, `patch_strategic` takes its merge keys from it.
"""
