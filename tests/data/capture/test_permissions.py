"""What pages may capture is for the operator to say."""

from pathlib import Path

import pytest

from planner.capture.permissions import ALLOW, SECRETS, capture_permissions
from planner.cluster.errors import CaptureError

LISTED = {ALLOW: "http://broker-1:8080, https://b2:8443 zk:zk-1:2181,zk-2:2181/pulsar"}


@pytest.mark.parametrize("text", ["", "0", "no", "OFF", "  "])
def test_nothing_may_be_captured_unless_it_is_said(text: str) -> None:
    allowed = capture_permissions({ALLOW: text})
    assert not allowed.any_at_all
    with pytest.raises(CaptureError, match="turned off"):
        allowed.check("http://broker-1:8080", "", secrets=False, custom=False)
    assert not capture_permissions({}).any_at_all


def test_listed_addresses_may_be_asked_with_secrets() -> None:
    allowed = capture_permissions(LISTED)
    assert allowed.admin_urls == ("http://broker-1:8080", "https://b2:8443")
    assert allowed.stores == ("zk:zk-1:2181,zk-2:2181/pulsar",)
    allowed.check("http://broker-1:8080", "", secrets=True, custom=False)
    allowed.check("https://b2:8443", "zk:zk-1:2181,zk-2:2181/pulsar", secrets=True, custom=False)
    for url, store, custom in (
        ("http://broker-1:9090", "", False),
        ("http://169.254.169.254", "", False),
        ("http://broker-1:8080", "zk:other:2181", False),
        ("http://broker-1:8080", "", True),
    ):
        with pytest.raises(CaptureError, match="not in the list of allowed addresses"):
            allowed.check(url, store, secrets=False, custom=custom)


def test_any_address_gets_no_secret() -> None:
    allowed = capture_permissions({ALLOW: "1", "PLANNER_PULSAR_TOKEN": "secret", SECRETS: "/"})
    assert allowed.anything
    assert allowed.tokens == ()
    assert allowed.files == ()
    allowed.check("http://anywhere:8080", "zk:anywhere:2181", secrets=False, custom=True)
    with pytest.raises(CaptureError, match="Secrets are sent only"):
        allowed.check("http://anywhere:8080", "", secrets=True, custom=False)


def test_only_tokens_of_the_planner_and_files_of_one_folder_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a")
    (tmp_path / ".hidden").write_text("b")
    (tmp_path / "folder").mkdir()
    environment = {
        **LISTED,
        SECRETS: str(tmp_path),
        "PLANNER_PULSAR_TOKEN": "a",
        "PLANNER_EMPTY_TOKEN": " ",
        "AWS_SECRET_TOKEN": "b",
    }
    allowed = capture_permissions(environment)
    assert allowed.tokens == ("PLANNER_PULSAR_TOKEN",)
    assert allowed.files == ("token",)
    assert allowed.file("token") == tmp_path / "token"
    assert allowed.file("") is None
    for name in ("folder", ".hidden", "../token", "/etc/passwd"):
        with pytest.raises(CaptureError, match="not a file in the folder"):
            allowed.file(name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("broker-1:8080", "http"),
        ("http://user:pa55word@broker-1:8080", "contains a user"),
        ("zk:zk-1:2181", "not an admin address"),
        ("http://broker-1:8080/path", "path"),
    ],
)
def test_what_is_written_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises(CaptureError, match=said) as caught:
        capture_permissions({ALLOW: text})
    assert "pa55word" not in str(caught.value)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="cannot be read"):
        capture_permissions({**LISTED, SECRETS: str(tmp_path / "none")})
