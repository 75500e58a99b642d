"""Upgrade: what another release of Pulsar does with this cluster, and how to get there."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from planner.cluster.releases import RELEASES, is_newer, release
from planner.cluster.text import count, plain
from planner.explain.upgrade import Step, Upgrade, before_upgrade, cycles_of, next_release, steps_of, upgrade_of
from planner.share.upgrade import UpgradeAnswer, answer_of, setting_rows
from planner.simulate.scenario import Scenario
from planner.web import address, registry, scenario_history, simulations, state
from planner.web.names import short
from planner.web.page import Page, Subject
from planner.web.widgets import table

_HOURS = {"1": "the first hour", "24": "the first day"}
_WHEN = {"before": "Before", "during": "During the restart", "after": "After"}
_HAPPENS = {"vanishes": "removed", "is new": "new", "other default": "new default"}
"""The page's words for a change of a setting, where the JSON has others."""
_WIDTHS = {"setting": 330, "what happens": 110, "set here": 70}


def runs_frame(answer: UpgradeAnswer) -> pd.DataFrame:
    """Return one row for each run."""
    runs = answer.runs.values()
    return pd.DataFrame(
        {
            "release": list(answer.runs),
            "bundles moved": [one.moves for one in runs],
            "splits": [one.splits for one in runs],
            "disconnected topics": [one.topics for one in runs],
            "disconnected clients": [one.clients for one in runs],
            "highest usage (%)": [one.peak_percent for one in runs],
            "deviation (points)": [one.deviation_points for one in runs],
        }
    )


def _settings(upgrade: Upgrade) -> None:
    rows = setting_rows(upgrade)
    st.markdown("#### Settings")
    if not rows:
        st.markdown("No setting of this cluster changes.")
        return
    rows = [{**row, "what happens": _HAPPENS.get(row["what happens"], row["what happens"])} for row in rows]
    given = sum(row["set here"] == "yes" for row in rows)
    st.markdown(
        f"{count(len(rows), 'setting')} {'differs' if len(rows) == 1 else 'differ'}; this cluster sets {given} of"
        " them. A value that equals the default of its own release counts as not set, and follows the new default."
    )
    table(pd.DataFrame(rows), "upgrade-settings", height="content", widths=_WIDTHS)


def _rules(upgrade: Upgrade) -> None:
    st.markdown("#### Rules")
    if upgrade.rules:
        st.markdown("\n".join(f"- {plain(rule)}" for rule in upgrade.rules))
    else:
        st.markdown("No changed rule affects this cluster.")
    if upgrade.other_rules:
        with st.expander(f"Changed rules that do not affect this cluster ({len(upgrade.other_rules)})"):
            st.markdown("\n".join(f"- {plain(rule)}" for rule in upgrade.other_rules))


def _way(steps: tuple[Step, ...]) -> None:
    st.markdown("#### Steps")
    for number, step in enumerate(steps, start=1):
        st.markdown(f"{number}. **{_WHEN[step.when]}.** {plain(short(step.what))}")
        if step.lines:
            st.code("\n".join(step.lines), language="properties" if step.when == "before" else "sh", wrap_lines=True)


def _open(view: state.Current, label: str, key: str, scenario: Scenario) -> None:
    if st.button(label, icon=":material/science:", key=key):
        scenario_history.change(view, scenario)
        registry.go("what_if")


def _answer(view: state.Current, upgrade: Upgrade) -> None:
    """Draw what the cluster does on both releases, once that is worked out."""
    outcomes = simulations.run(view, *upgrade.runs.values(), names=list(upgrade.runs))
    if outcomes is None:
        return
    answer = answer_of(view.captured, upgrade, [o.trace for o in outcomes], [o.result for o in outcomes])
    st.markdown(f"### {plain(answer.found.answer)}")
    st.markdown(plain(answer.found.sentence))
    if answer.found.kept:
        st.info(plain(answer.found.kept), icon=":material/settings_backup_restore:")
    formats = dict.fromkeys(("highest usage (%)", "deviation (points)"), "%.1f")
    table(runs_frame(answer), "upgrade-runs", height="content", formats=formats)
    before, after = (" + ".join(pair) for pair in upgrade.strategies)
    st.caption(
        f"{before} runs on both releases." if before == after else f"{before} runs today, {after} after the upgrade."
    )
    with st.container(horizontal=True):
        _open(view, f"Open {upgrade.target.name} as a scenario", "open-after", upgrade.after)
        if upgrade.to_keep:
            _open(view, "Open with today's values", "open-kept", upgrade.kept)


def draw(view: state.Current) -> None:
    """Draw the page."""
    own = release(view.captured.info.pulsar_version).name
    offered = {name: f"{name}{'' if is_newer(name, own) else ', downgrade'}" for name in RELEASES if name != own}
    with st.container(horizontal=True):
        first = next_release(own)
        to = address.choice("to", "Release", offered, first if first in offered else "")
        hours = address.choice("for", "Compare over", _HOURS, segments=True)
    today = before_upgrade(scenario_history.present(view), view.captured)
    today = replace(today, cycles=cycles_of(int(hours), today.settings_over(view.captured)))
    upgrade = upgrade_of(view.captured, today, release(to).name)
    for blocker in upgrade.blockers:
        st.error(plain(short(f"Blocker: {blocker}")), icon=":material/block:")
    _answer(view, upgrade)
    _settings(upgrade)
    _rules(upgrade)
    _way(steps_of(upgrade, view.captured))


PAGE = Page(
    title="Upgrade",
    icon=":material/upgrade:",
    purpose="How another release of Pulsar treats this cluster: settings, rules, moves, and the steps of the upgrade.",
    draw=draw,
    subject=Subject.SCENARIO,
)
