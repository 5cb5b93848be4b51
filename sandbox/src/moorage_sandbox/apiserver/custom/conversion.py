"""Rules about the conversion of a definition: its strategy, and the webhook that converts.

Place in the flow: `definition` checks each definition here, and `converter` asks the webhook.
Mirrors kubernetes v1.36 apiextensions-apiserver pkg/apis/apiextensions/validation,
validateCustomResourceConversion.
"""

from __future__ import annotations

from typing import Any, Final

from moorage.kinds.fields import one_of
from moorage.kinds.kind import FieldError, forbidden, required
from moorage.kinds.tree import child, text
from moorage.policies.hook_rules import check_client, check_review_versions

HTTPS_PORT: Final = 443
"""The port of a webhook's service where none is given."""
_FIELD: Final = "spec.conversion"


def check_conversion(obj: Any, where: str) -> list[FieldError]:
    """Check the conversion of a definition; ``where`` is not used, the definition is whole."""
    conversion = child(obj, "spec", "conversion")
    strategy, webhook = text(conversion, "strategy"), conversion.get("webhook")
    errors = one_of("None", "Webhook")(strategy, f"{_FIELD}.strategy")
    if strategy != "Webhook":
        if webhook is not None:
            detail = "should not be set when strategy is not set to Webhook"
            errors.append(forbidden(f"{_FIELD}.webhook", detail))
        return errors
    detail = "required when strategy is set to Webhook"
    if webhook is None:
        errors.append(required(f"{_FIELD}.webhook", detail))
    elif webhook.get("clientConfig") is None:
        errors.append(required(f"{_FIELD}.webhook.clientConfig", detail))
    else:
        errors += check_client(webhook["clientConfig"], f"{_FIELD}.webhook.clientConfig")
        errors += check_review_versions(
            webhook.get("conversionReviewVersions"),
            f"{_FIELD}.webhook.conversionReviewVersions",
        )
    return errors
