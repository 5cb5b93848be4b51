"""The key that signs tokens of service accounts, and the documents that let others verify them.

Place in the flow: `account_tokens` signs and verifies here; `server` answers the paths. Signatures
are ES256 (RFC 7518). Mirrors kubernetes v1.36 pkg/serviceaccount: jwt.go and
openidmetadata.go.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from moorage_sandbox.apiserver.wire.requests import Reply

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
ALGORITHM: Final = "ES256"
CONFIGURATION_PATH: Final = "/.well-known/openid-configuration"
KEYS_PATH: Final = "/openid/v1/jwks"
# Order of the curve P-256, and the length of its numbers in bytes.
_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_BYTES: Final = 32
# Signatures that are remembered: verifying one takes 0.15 ms.
_VERIFIED_MAX: Final = 1024


class TokenKeys:
    """The key of one cluster.

    Parameters
    ----------
    secret
        The key is derived from it.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.verify = lru_cache(maxsize=_VERIFIED_MAX)(self._verify)

    # The library is imported with the first token: most servers never issue one.
    @cached_property
    def _key(self) -> EllipticCurvePrivateKey:
        from cryptography.hazmat.primitives.asymmetric import ec

        found = hmac.digest(self._secret, b"tokens of service accounts", "sha512")
        number = int.from_bytes(found, "big") % (_ORDER - 1) + 1
        return ec.derive_private_key(number, ec.SECP256R1())

    @cached_property
    def name(self) -> str:
        """The ``kid`` of the key."""
        numbers = self._key.public_key().public_numbers()
        content = numbers.x.to_bytes(_BYTES, "big") + numbers.y.to_bytes(_BYTES, "big")
        return as_text(hashlib.sha256(content).digest())

    def sign(self, text: str) -> str:
        """Return the signature of a text."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, utils

        signature = self._key.sign(text.encode(), ec.ECDSA(hashes.SHA256()))
        numbers = utils.decode_dss_signature(signature)
        return as_text(b"".join(number.to_bytes(_BYTES, "big") for number in numbers))

    def _verify(self, text: str, signature: str) -> bool:
        """Whether a text has this signature."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, utils

        try:
            sent = from_text(signature)
            halves = (int.from_bytes(part, "big") for part in (sent[:_BYTES], sent[_BYTES:]))
            encoded = utils.encode_dss_signature(*halves)
            self._key.public_key().verify(encoded, text.encode(), ec.ECDSA(hashes.SHA256()))
        except (InvalidSignature, ValueError):
            # A stranger's token may not even be ASCII.
            return False
        return len(sent) == 2 * _BYTES

    def document(self, path: str) -> Reply | None:
        """Return the document at a path; None for other paths."""
        if path == CONFIGURATION_PATH:
            return _reply("application/json", self._configuration())
        if path == KEYS_PATH:
            return _reply("application/jwk-set+json", self._keys())
        return None

    def _configuration(self) -> dict[str, Any]:
        return {
            "issuer": ISSUER,
            "jwks_uri": f"{ISSUER}{KEYS_PATH}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        }

    def _keys(self) -> dict[str, Any]:
        numbers = self._key.public_key().public_numbers()
        x, y = (as_text(each.to_bytes(_BYTES, "big")) for each in (numbers.x, numbers.y))
        key = {"use": "sig", "kty": "EC", "kid": self.name, "crv": "P-256", "alg": ALGORITHM}
        return {"keys": [key | {"x": x, "y": y}]}


def _reply(content_type: str, content: dict[str, Any]) -> Reply:
    return Reply(status=200, body=msgspec.json.encode(content), content_type=content_type)


def as_text(data: bytes) -> str:
    """Return bytes in the form of a token: base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_text(text: str) -> bytes:
    """Return the bytes of a part of a token.

    Raises
    ------
    ValueError
        The part is not base64.
    """
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
