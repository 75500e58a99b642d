"""The page about captures says what the code does."""

from dataclasses import fields

from planner.capture.catalogue import CATALOGUE, Scope
from planner.capture.options import Limits
from tools.make_capture_tables import PAGE, filled


def test_tables_are_those_of_the_catalogue() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page) == page, "run tools/make_capture_tables.py"


def test_bounds_are_those_of_the_code() -> None:
    bounds = PAGE.read_text(encoding="utf-8").split("## Limits")[1].split("## ")[0]
    limits = Limits()
    for text in (
        f"| {limits.in_flight}, {limits.in_flight_per_broker} |",
        f"| {limits.per_second:g} |",
        f"| {limits.connect_s:g} s, {limits.request_s:g} s, {limits.total_s:g} s |",
        f"pause {limits.back_off_s:g} s, doubled | {limits.attempts} |",
        f"| {limits.answer_bytes >> 20} MiB (less for most), {limits.total_bytes >> 30} GiB |",
        f"| {limits.namespaces:,}, {limits.brokers:,} |",
    ):
        assert text in bounds


def test_every_request_says_what_it_needs() -> None:
    assert len({request.name for request in CATALOGUE}) == len(CATALOGUE)
    for request in CATALOGUE:
        assert request.permission
        assert request.gives
        assert request.without
        assert ("{broker}" in request.path) <= (request.scope is Scope.BROKER)
        assert all(getattr(request, field.name) is not None for field in fields(request))
