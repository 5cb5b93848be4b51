"""Rules about the conversion of a definition: its strategy, and the webhook that converts.

Place in the flow: `definition` checks each definition here. Objects of one version need no
conversion, so a definition with the strategy ``Webhook`` is accepted while it serves and stores one
version only. Mirrors kubernetes v1.36 apiextensions-apiserver pkg/apis/apiextensions/validation,
validateCustomResourceConversion.
"""

from __future__ import annotations

from typing import Any, Final

from moorage.kinds.fields import one_of
from moorage.kinds.kind import FieldError, forbidden, invalid, required
from moorage.kinds.tree import child, objects, strings, text
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
    return errors + _several_versions(obj)


def _several_versions(obj: Any) -> list[FieldError]:
    """Refuse a definition whose objects would have to be converted: nothing here converts them."""
    versions = objects(obj, "spec", "versions")
    served = {text(each, "name") for each in versions if each.get("served")}
    stored = {text(each, "name") for each in versions if each.get("storage")}
    stored |= set(strings(obj, "status", "storedVersions"))
    names = sorted(served | stored)
    if len(names) < 2:
        return []
    detail = f"this server calls no webhooks to convert objects between {', '.join(names)}"
    return [invalid(f"{_FIELD}.strategy", "Webhook", detail)]
