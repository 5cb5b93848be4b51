"""ValidatingAdmissionPolicies: rules in CEL about every object that is written.

Place in the flow: `moorage.apiserver.admission` asks `denying` before an object is stored.
`matching` finds the bindings of a write, and `expressions` evaluates their policies.

What belongs here: the evaluation of policies. Their defaults and validation belong to
`moorage.apiserver.kinds.admission_policy`, the CEL runtime to `moorage.apiserver.custom.rules`.
"""
