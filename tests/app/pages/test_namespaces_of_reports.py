"""The page Namespaces says the same as the command, also of namespaces about which there is little to say."""

import pytest

from planner.namespaces.population import population_of
from planner.web import state
from tests.app.namespaces.public_reports import REPORTS, cluster
from tests.app.pages.test_namespaces_page import Page, shown


def test_a_namespace_without_topics(page: Page) -> None:
    """The page said that the capture lacks them, and to capture again."""
    made = cluster(3, "a/b", 4, [])
    saved = state.workspace().add(made, "no topics")
    test = page("namespaces", snapshot=saved.digest[:12], namespace="a/b")
    assert not test.exception
    said = shown(test)
    assert "a/b has no topics yet, so its bundles make no difference." in said
    assert "lists no topics" not in said
    assert "Its bundles have no traffic." in said
    assert "heaviest bundle" not in said
    with pytest.raises(Exception, match="a/b has no topics yet"):
        population_of(made, "a/b")


@pytest.mark.parametrize(
    ("report", "verdict"),
    [
        ("one broker by policy (issue 14429)", "Only one broker may serve this namespace (isolation policy report)"),
        ("no broker by policy (issue 7432)", "its isolation policy report allows none that runs."),
    ],
)
def test_no_number_is_advised_where_bundles_make_no_difference(page: Page, report: str, verdict: str) -> None:
    namespace, made = REPORTS[report]
    saved = state.workspace().add(made(), report)
    test = page("namespaces", snapshot=saved.digest[:12], namespace=namespace)
    assert not test.exception
    said = shown(test)
    assert verdict in said
    assert "recreated" not in said
    assert "An even part is" not in said
