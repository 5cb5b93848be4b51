"""Admission policies: rules in CEL about every object that is written, and changes of it.

Place in the flow: `moorage.apiserver.writing` has objects changed by `mutating` before they are
validated, and `moorage.apiserver.admission` asks `denying` before they are stored. `asking` and
`matching` find the policies that are about a write, and `moorage.rules` evaluates them. `noting`
keeps their warnings and audit annotations. `type_checking` writes the status of policies, with the
types of `moorage.rules.object_types`.

What belongs here: the evaluation of policies. Their defaults and validation belong to
`moorage.apiserver.policies.admission_policy`, the CEL runtime to `moorage.cel`.
"""
