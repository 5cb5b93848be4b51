"""Certificate signing requests for tests."""

from __future__ import annotations

import base64

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def signing_request(*organizations: str) -> str:
    """Return a request for a client of these groups, as the field ``spec.request`` has it."""
    names = [x509.NameAttribute(NameOID.COMMON_NAME, "jane")]
    names += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names))
    pem = request.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return base64.b64encode(pem).decode()
