"""The wire: connections, bytes and media types become a `Request`, and a `Reply` becomes bytes.

Place in the flow: `http` and `connection` read calls and hold them by `fairness`. `requests` has
what the rest of the server sees. `bodies`, `negotiate` and `yaml_calls` know the forms of bodies
and answers; `render` and `table` make the answers.

What belongs here: what depends on HTTP and its encodings, but for protobuf, which has a folder of
its own. What does not belong here: what a call means.
"""
