"""Under which names the server answers: what is no name is refused, not kept for no use."""

import logging
import os
from typing import Any

import pytest
import streamlit as st

from planner.__main__ import main
from planner.cluster.errors import PlannerError
from planner.cluster.host_names import allowed_name, host_name
from planner.web import headers


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("planner.example", "planner.example"),
        ("Planner.Example.", "planner.example"),
        ("*.corp.example", "*.corp.example"),
        ("*", "*"),
        ("10.0.0.7", "10.0.0.7"),
        ("[::1]", "::1"),
        ("fe80::1", "fe80::1"),
    ],
)
def test_names_that_are_allowed(given: str, name: str) -> None:
    assert allowed_name(given, "--allow") == name


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ("http://planner.example:8501/", "Use planner.example."),
        ("https://user@planner.example/x?y", "Use planner.example."),
        ("planner.example:8501", "Use planner.example."),
        ("http://[::1]:8501/", "Use ::1."),
        ("ab.cd:80", "Use ab.cd."),
        ("plänner.example", "Use xn--plnner-cua.example."),
        ("", "The name is empty."),
        (" ", "The name is empty."),
        ("a b", "Use the name alone"),
        ("a,b", "Use the name alone"),
        ("x*.example", "Use the name alone"),
        ("http://", "Use the name alone"),
    ],
)
def test_what_is_no_name(given: str, remedy: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("it was started"))
    assert main(["dashboard", f"--allow={given}"]) == 2
    said = capsys.readouterr().err
    assert remedy in said
    assert "--allow" in said
    with pytest.raises(PlannerError):
        allowed_name(given, "--allow")


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost", "localhost"),
        ("LOCALHOST.:8501", "localhost"),
        ("[::1]:8501", "::1"),
        ("evil.example@localhost", ""),
        ("localhost/evil", ""),
        ("localhost?evil", ""),
        ("localhost#evil", ""),
        ("localhost\\evil", ""),
        ("localhost:abc", ""),
        ("localhost:99999", ""),
        ("localhost:1:2", ""),
        ("localhost evil", ""),
        ("*", ""),
        ("", ""),
    ],
)
def test_the_name_in_a_header(header: str, name: str) -> None:
    assert host_name(header) == name


def test_a_name_of_the_configuration_that_is_none_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    given = ["localhost", "http://planner.example:8501/"]
    monkeypatch.setattr(st, "get_option", lambda name: {"server.allowedHosts": given}[name])
    with caplog.at_level(logging.WARNING):
        assert headers.allowed_hosts() == ("localhost",)
    assert "Use planner.example." in caplog.text
