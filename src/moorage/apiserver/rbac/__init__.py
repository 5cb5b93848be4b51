"""Rights of users: role-based access control, as kube-apiserver's authorizer of this name.

Belongs here: reading rules, deciding about a call, the reviews that tell of decisions, the check
that nobody grants more than he has, and the roles every cluster begins with. Who calls is found
out in `moorage.apiserver.auth`; what roles look like is in `moorage.apiserver.kinds`.
"""
