"""A capture of a real cluster that asks for tokens or client certificates, over TLS."""

from dataclasses import replace
from pathlib import Path

import pytest

from planner.capture.options import CaptureOptions, Credentials
from planner.capture.run import capture_cluster
from planner.cluster.errors import CaptureError
from tests.cluster.scene import SecureScene
from tests.cluster.secure import SUPERUSER

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


def options(secure: SecureScene, out: Path, token: str, **credentials: Path) -> CaptureOptions:
    token_file = out / "token"
    token_file.write_text(token)
    given = Credentials(token_file=token_file if token else None, ca_file=secure.keys.ca_file)
    return CaptureOptions(
        secure.cluster.brokers[0].url,
        out / "capture",
        metadata_store=secure.cluster.store_url,
        credentials=replace(given, **credentials),  # type: ignore[arg-type]  # fields that are paths
    )


def test_token(secure: SecureScene, tmp_path: Path) -> None:
    token = secure.keys.token(SUPERUSER)
    result = capture_cluster(options(secure, tmp_path, token))
    assert result.snapshot.brokers.name == (secure.cluster.brokers[0].id,)
    assert result.snapshot.brokers.has_load_data.all()
    info = result.snapshot.info  # the brokers use that very token
    assert info.settings_from == "brokers"
    assert info.dynamic_settings is not None
    assert result.snapshot.settings.integer("loadBalancerReportUpdateMaxIntervalMinutes") == 1
    said = "The brokers use the same token as you. Their configuration was read; secrets were removed."
    assert said in info.warnings
    kept = [path for path in (tmp_path / "capture").rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if token.encode() in path.read_bytes()]


def test_client_certificate(secure: SecureScene, tmp_path: Path) -> None:
    folder = secure.keys.folder
    asked = options(secure, tmp_path, "", cert_file=folder / "client.pem", key_file=folder / "client.key")
    assert capture_cluster(asked).snapshot.brokers.has_load_data.all()


def test_wrong_token(secure: SecureScene, tmp_path: Path) -> None:
    token = secure.keys.token(SUPERUSER, secret=bytes(32))
    with pytest.raises(CaptureError) as caught:
        capture_cluster(options(secure, tmp_path, token))
    assert "401" in str(caught.value)
    assert token not in str(caught.value)


def test_token_of_a_stranger(secure: SecureScene, tmp_path: Path) -> None:
    """Known to the brokers, and with no right to anything: the metadata store has what decides."""
    asked = options(secure, tmp_path, secure.keys.token("stranger"))
    result = capture_cluster(asked)
    assert result.snapshot.brokers.name == (secure.cluster.brokers[0].id,)
    assert result.snapshot.brokers.has_load_data.all()
    assert any("The API refused the list of brokers" in warning for warning in result.snapshot.info.warnings)
    assert not [part.file for part in result.parts if part.good and part.file.startswith(("brokers-all", "owned"))]
    with pytest.raises(CaptureError, match=r"HTTP 40[13]"):
        capture_cluster(replace(asked, out=tmp_path / "without-a-store", metadata_store=""))


def test_unknown_authority(secure: SecureScene, tmp_path: Path) -> None:
    asked = options(secure, tmp_path, secure.keys.token(SUPERUSER), ca_file=secure.keys.folder / "other-ca.pem")
    with pytest.raises(CaptureError, match="certificate"):
        capture_cluster(asked)
