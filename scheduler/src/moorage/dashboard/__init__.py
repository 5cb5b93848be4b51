"""The page: what the scheduler sees and decides, live in a browser.

`source` is where the answers come from: the questions of a scheduler, in this process or elsewhere.
`feed` asks again and again while somebody looks, and keeps what changed; a `view` is both. `doors`
are the ways to log in, by a link or with a token; `sessions` knows the cookies; `guard` lets nobody
else in. `server` serves the files of ``static``, the answers, and the changes as server-sent
events; `acts` are the few changes a sandbox offers.

The page knows nothing that the JSON of the questions does not say, and holds no way to write.

Does not belong here: answers (`service.questions`, `explain`), the scheduler's own port.
"""
