"""Secrets: read from files or the environment, sent, and never kept, logged or shown."""

import json
import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from planner.capture.options import Credentials, check_url
from planner.cluster.errors import CaptureError
from planner.cluster.files import reading
from planner.formats.encoding import parse_json

_MAX_BYTES = 64 << 10
_ISSUER_SUFFIX = "/.well-known/openid-configuration"


def _read(path: Path, what: str) -> str:
    trouble = f"The {what} file cannot be read"
    with reading(path, CaptureError, "Check its name and permissions.", what=trouble), path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise CaptureError(f"This file is too long for a {what}.", where=str(path), remedy="Check the file name.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CaptureError(
            f"This file does not contain a {what}.", where=str(path), remedy="Check the file name."
        ) from None


def read_token(credentials: Credentials) -> str:
    """Return the token; empty when none is configured.

    Raises:
        CaptureError: The file cannot be read, or what it or the variable holds is no token.
    """
    if credentials.token_file is not None:
        where, token = str(credentials.token_file), _read(credentials.token_file, "token").strip()
    else:
        where = f"environment variable {credentials.token_env}"
        token = os.environ.get(credentials.token_env, "").strip()
        if not token:
            return ""
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise CaptureError(
            "This is not a valid token.", where=where, remedy="A token is one line of letters, digits and a few signs."
        )
    return token


@dataclass(frozen=True, slots=True)
class ClientKey:
    """Client credentials of OAuth2; printing one shows no secret.

    Attributes:
        client_id: Name of the client.
        client_secret: Its secret.
        discovery_url: Where the issuer says what its token endpoint is.
    """

    client_id: str
    client_secret: str = field(repr=False)
    discovery_url: str


def read_client_key(path: Path) -> ClientKey:
    """Read a key file as Pulsar's own clients do: JSON with `client_id`, `client_secret` and `issuer_url`.

    Raises:
        CaptureError: It cannot be read, or lacks one of them.
    """
    remedy = 'Write {"client_id": …, "client_secret": …, "issuer_url": "https://…"}.'
    try:
        key = json.loads(_read(path, "OAuth2 client key"))
    except ValueError:
        raise CaptureError("Not valid JSON.", where=str(path), remedy=remedy) from None
    names = ("client_id", "client_secret", "issuer_url")
    values = [key.get(name) if isinstance(key, dict) else None for name in names]
    client_id, client_secret, issuer_url = (value if isinstance(value, str) else "" for value in values)
    if not (client_id and client_secret and issuer_url):
        raise CaptureError(f"One of {', '.join(names)} is missing.", where=str(path), remedy=remedy)
    scheme, _, rest = issuer_url.partition("://")
    check_url(f"{scheme}://{rest.partition('/')[0]}", f"{path}: issuer_url")
    return ClientKey(client_id, client_secret, issuer_url.rstrip("/") + _ISSUER_SUFFIX)


def read_store_login(path: Path) -> str:
    """Return `user:password` for the metadata store; see `read_login`."""
    return read_login(path, "login of the metadata store")


def read_login(path: Path, what: str) -> str:
    """Return `user:password` of a file.

    Args:
        path: The file.
        what: What it is for.

    Raises:
        CaptureError: The file cannot be read, or holds something else.
    """
    login = _read(path, what).strip()
    if ":" not in login or not login.isprintable():
        raise CaptureError("This is not a valid login.", where=str(path), remedy="Write user:password in one line.")
    return login


def tls_context(credentials: Credentials) -> ssl.SSLContext:
    """Return what TLS connections are made with: names and certificates are always checked.

    Raises:
        CaptureError: A certificate or key cannot be read.
    """
    where, remedy = str(credentials.ca_file), "Use a PEM file."
    try:
        context = ssl.create_default_context(cafile=credentials.ca_file)
        if credentials.cert_file is not None:
            where, remedy = str(credentials.cert_file), "Use PEM files; the key must not be encrypted."
            context.load_cert_chain(credentials.cert_file, credentials.key_file, password=_no_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or "not readable"
        raise CaptureError(f"The certificate or key cannot be used: {reason}.", where=where, remedy=remedy) from None
    return context


def _no_password() -> str:
    raise ValueError("encrypted")  # instead of asking on the terminal, which would wait for ever


def read_issuer_answer(data: bytes, where: str) -> dict[str, object]:
    """Return a JSON object that an issuer answered.

    Raises:
        CaptureError: It is something else.
    """
    value = parse_json(data, where)
    if not isinstance(value, dict):
        raise CaptureError("The answer is not a JSON object.", where=where, remedy="Check issuer_url.")
    return value
