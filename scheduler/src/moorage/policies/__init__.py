"""Admission policies: rules in CEL about every object that is written, and changes of it.

Place in the flow: the API server asks here for each write, and what-if for each new object.
`bound` has the policies with their bindings, and `matching` finds those that are about a write.
`mutating` changes the object before it is validated, `denying` looks for refusals afterwards. Both
evaluate `expressions`, where `moorage.cel.evaluators` says. `object_literals` rewrites the objects
that a mutation builds.

What belongs here: policies as pure functions of a write and of objects, and their kinds
(`admission_policy`, and `webhooks` next to them; `registry` lists them). What does not belong here:
a store, a call, and what a reply says about policies (`moorage_sandbox.apiserver.policies`); the
CEL runtime (`moorage.cel`).
"""
