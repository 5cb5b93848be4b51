"""Questions about the running scheduler, answered over HTTP: read-only JSON under ``/moorage/v1``.

`question` says what a question is; `pages` serves questions and turns errors into Statuses;
`openapi` describes them. `queue` answers where pods wait and until when, from the state of the
scheduler; `folding` makes pods that wait alike one row.

A question is answered between two attempts, on the scheduler's own loop, and awaits nothing
meanwhile. It changes nothing: no cache, no random stream, no queue, no counter of decisions.

Does not belong here: text for people (`cli`), causes of rejections (`explain`).
"""
