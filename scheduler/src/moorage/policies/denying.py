"""What a ValidatingAdmissionPolicy finds about a write.

Place in the flow: the API server and what-if ask here for each policy that matches a write.
Mirrors kubernetes v1.36 apiserver pkg/admission/plugin/policy/validating/dispatcher.go.
"""

from __future__ import annotations

from moorage.cel.budget import USED_UP
from moorage.kinds.status import StatusError
from moorage.policies.bound import BoundPolicies, BoundPolicy, refusal
from moorage.policies.expressions import Failed, Judgement, judgement
from moorage.policies.matching import Write


def judgement_of(
    policies: BoundPolicies, bound: BoundPolicy, write: Write, *, dry_run: bool
) -> Judgement:
    """Return what a policy finds about a write.

    Raises
    ------
    moorage.cel.evaluators.TooLongHere
        The policy may take long, and the caller is in the loop.
    """
    if isinstance(bound.params, Failed):
        ignored = bound.policy.failure_policy == "Ignore"
        return Judgement([] if ignored else [bound.params])
    values = policies.variables(bound, write, dry_run=dry_run)
    answer: Judgement | None = policies.evaluate(judgement, bound.policy, values)
    return Judgement([Failed(USED_UP)]) if answer is None else answer


def denial(write: Write, bound: BoundPolicy, failed: Failed) -> StatusError:
    """Return the refusal of a write by a validation that does not hold."""
    message = (
        f"ValidatingAdmissionPolicy '{bound.name}' with binding "
        f"'{bound.binding_name}' denied request: {failed.message}"
    )
    return refusal(write, message, failed.reason)
