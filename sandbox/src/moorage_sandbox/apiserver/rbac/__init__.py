"""Rights of users: role-based access control, as kube-apiserver's authorizer of this name.

Belongs here: reading rules, deciding about a call, the reviews that tell of decisions, the check
that no caller grants more rights than it has, and the roles every cluster begins with.
`moorage_sandbox.apiserver.authentication.credentials` finds out which user calls; `moorage.kinds`
has the form of roles.
"""
