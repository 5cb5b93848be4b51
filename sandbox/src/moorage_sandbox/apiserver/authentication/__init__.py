"""Who calls: a token or a certificate becomes a `User`.

Place in the flow: the first step of a call. `credentials` reads them, `account_tokens` issues and
verifies the tokens of service accounts with the key of `token_keys`.

What belongs here: identity. What a user may do is decided in `moorage_sandbox.apiserver.rbac`.
"""
