"""Admission policies of the stored cluster, for the writes of clients.

Place in the flow: `moorage_sandbox.apiserver.verbs.writing` has objects changed by `mutating`
before they are validated, and `moorage_sandbox.apiserver.admission.checks` asks `denying` before
they are stored. Both read policies from the store (`stored`) and evaluate them by
`moorage.policies`. `noting` keeps their warnings and audit annotations. `type_checking` writes the
status of policies, with the types of `moorage_sandbox.rules.object_types`.

What belongs here: what needs a store or a reply. What a policy finds belongs to
`moorage.policies`.
"""
