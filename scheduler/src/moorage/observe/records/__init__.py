"""The records of attempts: the findings of each, kept for explaining, within a bound of bytes.

`record` says what a record is. `ring` keeps records: the newest, and of each pod the first and the
last attempt longest. `recorder` makes them as attempts and bindings end; no decision reads them.
`shown_attempt` puts a record into words, and `file` writes these as JSON lines.
"""
