"""What a page may capture: decided by who runs the server, not by who opens the page.

A capture makes the server send requests, from where it stands in the network, to an address that somebody chose. Who
can open the page could otherwise make it ask any machine it can reach, and send a secret of the server anywhere. So
nothing may be captured unless the operator says so, and secrets go only to addresses that the operator has named.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.capture.options import check_url
from planner.capture.stores.registry import SCHEMES, is_store_address
from planner.cluster.errors import CaptureError
from planner.cluster.files import reading
from planner.cluster.resources import TOKEN_VARIABLE

ALLOW = "PLANNER_ALLOW_CAPTURE"
"""Variable with `1` (any address, without secrets) or the allowed addresses, separated by commas."""

SECRETS = "PLANNER_CAPTURE_SECRETS"
"""Variable with the folder whose files a page may name."""

_YES = {"1", "true", "yes", "on", "any"}
_NO = {"", "0", "false", "no", "off"}
_MOST_FILES = 200


@dataclass(frozen=True, slots=True)
class CapturePermissions:
    """What a page may capture.

    Attributes:
        anything: Any address, without secrets.
        admin_urls: Admin addresses that may be asked.
        stores: Metadata stores that may be asked.
        tokens: Names of variables that may hold a token.
        folder: Where the files lie that may be named; None for none.
        files: Names of these files.
    """

    anything: bool = False
    admin_urls: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    folder: Path | None = None
    files: tuple[str, ...] = ()

    @property
    def any_at_all(self) -> bool:
        """Whether a page may capture at all."""
        return self.anything or bool(self.admin_urls)

    def file(self, name: str) -> Path | None:
        """Return a file that may be named; None for an empty name.

        Raises:
            CaptureError: It is no file of the folder.
        """
        if not name:
            return None
        if self.folder is None or name not in self.files:
            raise CaptureError(
                f"{name[:80]!r} is not a file in the folder of secrets.",
                where=SECRETS,
                remedy="Choose one that is listed.",
            )
        return self.folder / name

    def check(self, admin_url: str, store: str, *, secrets: bool, custom: bool) -> None:
        """Refuse what the operator has not allowed, whatever a page offers.

        Args:
            admin_url: Address to be asked.
            store: Metadata store to be asked; empty for none.
            secrets: Whether a secret is to be sent.
            custom: Whether other addresses are given, of metrics or of brokers.

        Raises:
            CaptureError: Naming what is not allowed.
        """
        if not self.any_at_all:
            raise CaptureError(
                "Captures are turned off.", where=ALLOW, remedy="The administrator of this server can turn them on."
            )
        if admin_url in self.admin_urls and (not store or store in self.stores) and not custom:
            return
        if not self.anything:
            raise CaptureError(
                "This address is not in the list of allowed addresses.",
                where=ALLOW,
                remedy="Choose one that is listed.",
            )
        if secrets:
            raise CaptureError(
                "Secrets are sent only to addresses that the administrator of this server has listed.",
                where=ALLOW,
                remedy=f"List the address in {ALLOW}, or capture on the command line.",
            )


def capture_permissions(environment: Mapping[str, str] | None = None) -> CapturePermissions:
    """Return what pages may capture, as the environment, by default that of the process, says.

    Raises:
        CaptureError: The variables hold something else than described.
    """
    given = os.environ if environment is None else environment
    text = given.get(ALLOW, "").strip()
    if text.lower() in _NO:
        return CapturePermissions()
    if text.lower() in _YES:
        return CapturePermissions(anything=True)
    urls, stores = [], []
    for word in re.split(rf"[\s,]+(?=https?:|{SCHEMES})", text):
        address = word.strip(", \t\n")
        if is_store_address(address):
            stores.append(address)
        else:
            check_url(address, ALLOW)
            urls.append(address.rstrip("/"))
    if not urls:
        raise CaptureError(
            "The value is not an admin address.",
            where=ALLOW,
            remedy="Write http://broker-1:8080, or 1 for any address.",
        )
    folder = Path(given[SECRETS]) if given.get(SECRETS) else None
    tokens = tuple(sorted(name for name in given if TOKEN_VARIABLE.fullmatch(name) and given[name].strip()))
    return CapturePermissions(
        False, tuple(dict.fromkeys(urls)), tuple(dict.fromkeys(stores)), tokens, folder, _files(folder)
    )


def _files(folder: Path | None) -> tuple[str, ...]:
    if folder is None:
        return ()
    with reading(SECRETS, CaptureError, what="The folder of secrets cannot be read"):
        files = sorted(p.name for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
        return tuple(files[:_MOST_FILES])
