"""The rights of callers on the secure port: TLS, authentication and authorization.

`tls` presents the certificate, reloads it, and asks callers for theirs;
`chain` reads that of a connection. `gate` lets a call pass or not: `authentication` finds the
caller, by `tokens` (TokenReview), client certificate or `front_proxy`, and `authorization` asks
whether the caller may (SubjectAccessReview). `reviews` sends both kinds of review; `trust` knows
the authorities of client certificates. `callers` has the nouns, `expiring` the cache.

Does not belong here: HTTP (`moorage.service.process.health`), the answers themselves.

Notes
-----
Mirrors kubernetes v1.36 ``apiserver/pkg/server/options`` (delegating authentication and
authorization), as kube-scheduler uses them.
"""
