"""Certificates and tokens for a cluster that asks for both."""

import base64
import hashlib
import hmac
import json
import secrets
import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

SUPERUSER = "operator"
_PROVIDERS = ("AuthenticationProviderToken", "AuthenticationProviderTls")


@dataclass(frozen=True)
class Keys:
    """What is needed to get in.

    Attributes:
        folder: Where the files are.
        secret: What tokens are signed with.
    """

    folder: Path
    secret: bytes

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.pem"

    def token(self, role: str, *, secret: bytes = b"") -> str:
        """Return a token (JWT, HS256) of a role; a wrong one when another secret is given."""
        parts = [_text(json.dumps(part).encode()) for part in ({"alg": "HS256"}, {"sub": role})]
        signature = hmac.digest(secret or self.secret, ".".join(parts).encode(), hashlib.sha256)
        return ".".join([*parts, _text(signature)])

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.ca_file)

    def settings(self) -> dict[str, object]:
        """Return what brokers are configured with."""
        server = self.folder / "server.pem", self.folder / "server.key"
        return {
            "tlsCertificateFilePath": server[0],
            "tlsKeyFilePath": server[1],
            "tlsTrustCertsFilePath": self.ca_file,
            "authenticationEnabled": "true",
            "authorizationEnabled": "true",
            "authenticationProviders": ",".join(f"org.apache.pulsar.broker.authentication.{n}" for n in _PROVIDERS),
            "superUserRoles": SUPERUSER,
            "tokenSecretKey": f"data:;base64,{base64.b64encode(self.secret).decode()}",
            "brokerClientTlsEnabled": "true",
            "brokerClientTrustCertsFilePath": self.ca_file,
            "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
            "brokerClientAuthenticationParameters": f"token:{self.token(SUPERUSER)}",
        }


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def make_keys(folder: Path) -> Keys:
    """Write an authority, a server's certificate, and that of a client who is a superuser."""
    folder.mkdir(parents=True)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    trustme.CA().cert_pem.write_to_path(folder / "other-ca.pem")
    for name, certificate in (
        ("server", authority.issue_cert("127.0.0.1", "127.0.0.2")),
        ("client", authority.issue_cert("operator@example.org", common_name=SUPERUSER)),
    ):
        certificate.cert_chain_pems[0].write_to_path(folder / f"{name}.pem")
        key = load_pem_private_key(certificate.private_key_pem.bytes(), password=None)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())  # the one form that Pulsar reads
        (folder / f"{name}.key").write_bytes(pem)
    return Keys(folder, secrets.token_bytes(32))
