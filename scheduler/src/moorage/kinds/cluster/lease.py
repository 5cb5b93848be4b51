"""Lease (kubernetes v1.36 pkg/apis/coordination/validation)."""

from __future__ import annotations

from moorage.api import resources
from moorage.kinds.cells import AGE, NAME, column
from moorage.kinds.fields import defaults, if_present, rules, within
from moorage.kinds.served import ServedKind

KINDS = (
    ServedKind(
        resource=resources.LEASES,
        needs_version=True,
        acted_on_by="leader election, the node life controller",
        created_by_put=True,
        columns=(NAME, column("Holder", "spec.holderIdentity", "Who holds the lease"), AGE),
        defaults=defaults(unset={"spec": {}}),
        rules=rules(
            ("spec.leaseDurationSeconds", if_present(within(1, None, "must be greater than 0"))),
            ("spec.leaseTransitions", within(0)),
        ),
    ),
)
