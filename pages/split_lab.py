"""Split lab: where a bundle would be cut, by which algorithm, and what becomes of the request."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from planner.cluster.errors import PlannerError, SettingError
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    AUTO_BUNDLE_SPLIT_ENABLED,
    DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM,
    NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES,
    NAMESPACE_BUNDLE_MAX_MSG_RATE,
    NAMESPACE_BUNDLE_MAX_TOPICS,
    SUPPORTED_NAMESPACE_BUNDLE_SPLIT_ALGORITHMS,
)
from planner.cluster.ranges import FULL_HIGH, format_range
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count, plain
from planner.cluster.units import MIB
from planner.explain.cluster_tables import bundle_ranges, bundles_of_namespace, measure
from planner.explain.split_advice import SplitAdvice, split_advice
from planner.figures.hash_space import topic_positions
from planner.pulsar.splitting import automatic_extensible, automatic_modular
from planner.pulsar.splitting.manual import HOT, LARGEST, SplitCommand, SplitOutcome, Verdict, answer
from planner.pulsar.splitting.protocol import SplitAlgorithm
from planner.pulsar.splitting.registry import SPLIT_ALGORITHMS, split_algorithm
from planner.remedy.split import tried_split
from planner.remedy.trials import Trials
from planner.share.link import canonical_text
from planner.simulate.admin_commands import quoted, split_command
from planner.web import address, scenario_history, state, tasks
from planner.web.doubts import doubt
from planner.web.page import Page, Subject
from planner.web.setting_form import setting_form
from planner.web.task import Report, Stopped
from planner.web.widgets import chart, show_error, show_notes, table

_MOST_POSITIONS = 200
_BUNDLES_LISTED = 5_000
_DRAWN = 2_000
_SAID = 8
_SHORT = {
    Verdict.SPLIT: "splits it",
    Verdict.UNCHANGED: "changes nothing",
    Verdict.REFUSED: "refuses",
    Verdict.UNANSWERED: "gets no response",
    Verdict.UNKNOWN: "depends on topics",
}
_TRYING = "Looks worth it"
_BOXES = {
    _TRYING: st.info,
    "Worth it": st.success,
    "Not worth it": st.warning,
    "No need": st.info,
    "Not known": st.info,
}
_VERDICTS = {
    Verdict.SPLIT: "would be split",
    Verdict.UNCHANGED: "would not change, although the request succeeds",
    Verdict.REFUSED: "would not be split: Pulsar refuses the request",
    Verdict.UNANSWERED: "would not be split, and the request gets no response",
    Verdict.UNKNOWN: "may be split, depending on topics that the snapshot does not list",
}


def read_positions(text: str) -> tuple[int, ...]:
    """Read positions such as `0x33000000, 858993459`.

    Raises:
        SettingError: One is no number within the hash space, or there are too many.
    """
    words = [w for w in text.replace(",", " ").split() if w]
    if len(words) > _MOST_POSITIONS:
        raise SettingError("Too many positions.", where="Positions", remedy=f"Use at most {_MOST_POSITIONS}.")
    found = []
    for word in words:
        try:
            number = int(word, 16) if word.lower().startswith("0x") else int(word)
        except ValueError:
            number = -1
        if not 0 <= number <= FULL_HIGH:
            remedy = "Use comma-separated positions such as 0x33000000 or 855638016."
            raise SettingError(
                f"'{word[:40]}' is not a valid position in the hash space.", where="Positions", remedy=remedy
            )
        found.append(number)
    return tuple(found)


def children_frame(snapshot: Snapshot, bundle: int, cuts: tuple[int, ...], config: Settings) -> pd.DataFrame:
    """Return one row for the bundle and one for each child: topics, traffic, and whether it is still too hot."""
    low, high = int(snapshot.bundles.low[bundle]), int(snapshot.bundles.high[bundle])
    rows = snapshot.topics.of_bundle(bundle)
    hashes = snapshot.topics.hash[rows].astype(np.int64)
    topics = snapshot.topics
    rate = topics.msg_rate_per_s(rows)
    throughput = topics.throughput_bytes_per_s(rows)
    limits = (
        config.integer(NAMESPACE_BUNDLE_MAX_TOPICS),
        config.integer(NAMESPACE_BUNDLE_MAX_MSG_RATE),
        config.integer(NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES),
    )
    made = []
    ranges = [(low, high), *zip((low, *cuts), (*cuts, high), strict=True)] if cuts else [(low, high)]
    for at, (start, stop) in enumerate(ranges):
        inside = (hashes >= start) & ((hashes < stop) | (stop == FULL_HIGH))
        values = (int(inside.sum()), float(rate[inside].sum()), float(throughput[inside].sum()) / MIB)
        hot = [n for n, v, limit in zip(("topics", "msg/s", "MiB/s"), values, limits, strict=True) if v > limit]
        made.append(
            {
                "part": "bundle" if at == 0 else f"child {at}",
                "range": format_range(start, stop),
                "topics": values[0],
                "msg/s": values[1],
                "MiB/s": values[2],
                "above the limit of": ", ".join(hot) if values[0] > 1 or not hot else f"{', '.join(hot)} (one topic)",
            }
        )
    return pd.DataFrame(made)


def _namespace(snapshot: Snapshot, place: Any) -> str:
    first = int(np.argmax(np.nan_to_num(measure(snapshot, "throughput"))))
    busiest = snapshot.namespaces[snapshot.bundles.namespace[first]]
    names = sorted(snapshot.namespaces)
    return address.choice("namespace", "Namespace", names, busiest, named=True, clears=("bundle",), place=place)


def _bundle(snapshot: Snapshot, namespace: str, place: Any) -> str:
    """Draw the choice of a bundle: a range, or a word that stands for one."""
    rows = bundles_of_namespace(snapshot, namespace)[:_BUNDLES_LISTED]
    ranges = bundle_ranges(snapshot, rows)
    busiest = ranges[int(np.argmax(np.nan_to_num(measure(snapshot, "throughput")[rows])))]
    help_ = (
        "LARGEST: the bundle with the most persistent topics. HOT: the bundle with the highest long-term throughput."
    )
    options = [*ranges, LARGEST, HOT]
    return address.choice("bundle", "Bundle", options, busiest, named=True, place=place, help=help_)


def _algorithm(config: Settings, place: Any) -> str:
    configured = config.text(DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM)
    names = [a.name for a in SPLIT_ALGORITHMS]
    help_ = "The request names the algorithm if it differs from defaultNamespaceBundleSplitAlgorithm."
    default = configured if configured in names else names[0]
    return address.choice("algorithm", "Algorithm", names, default, place=place, help=help_)


def _explain(outcome: SplitOutcome, command: SplitCommand) -> str:
    status = f" (HTTP {outcome.status})" if outcome.status is not None else ""
    failed = f" {outcome.error.what}" if outcome.error is not None else ""
    more = len(outcome.reasons) - _SAID
    lines = [f"**{command.bundle} {_VERDICTS[outcome.verdict]}{status}.**{failed}\n"]
    lines += [f"- {reason.text}" for reason in outcome.reasons[:_SAID]]
    return "\n".join([*lines, f"- and {more} more"] if more > 0 else lines)


def _settings(view: state.Current, algorithm: SplitAlgorithm, config: Settings) -> None:
    """Draw the form: what the algorithm reads, and the limits of automatic splitting."""
    modular = view.snapshot.info.load_manager is LoadManager.MODULAR
    automatic = automatic_modular.SETTINGS if modular else automatic_extensible.SETTINGS
    own = (*algorithm.settings, DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM, SUPPORTED_NAMESPACE_BUNDLE_SPLIT_ALGORITHMS)
    request, by_itself = st.tabs(["Request", "Automatic splits"])
    with request:
        setting_form(view, own, config, columns=1)
    with by_itself:
        setting_form(view, [name for name in automatic if name not in own], config, columns=1)


def draw(view: state.Current) -> None:
    """Draw the page: choices on top, limits in the drawer."""
    present = scenario_history.present(view)
    view, config = view.under(present.load_manager_over(view.captured)), present.settings_over(view.captured)
    snapshot = view.snapshot
    if not len(snapshot.bundles):
        st.info("The snapshot has no bundles.", icon=":material/grid_off:")
        return
    left, middle, right = st.columns(3)
    namespace = _namespace(snapshot, left)
    bundle = _bundle(snapshot, namespace, middle)
    picked = _algorithm(config, right)
    algorithm = split_algorithm(picked)
    st.caption(algorithm.summary)
    with st.sidebar:
        st.header("Limits")
        _settings(view, algorithm, config)
    try:
        positions = _positions() if algorithm.needs_positions else None
        default = config.text(DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM)
        command = SplitCommand(namespace, bundle, "" if picked == default else picked, positions)
        _results(view, answer(snapshot, command, config), command, config)
    except PlannerError as error:
        show_error(error)
    _documentation(algorithm)


def _positions() -> tuple[int, ...] | None:
    help_ = "Positions at which the bundle is divided, in hexadecimal or decimal."
    hint = "0x33000000, 0x66000000"
    return read_positions(address.text("positions", "Positions", max_chars=2_000, placeholder=hint, help=help_)) or None


def _advice(view: state.Current, position: int, config: Settings) -> SplitAdvice:
    """Return whether a split is worth it; what looks so is tried, as everywhere, and until then is said to be tried."""
    advice = split_advice(view.snapshot, position, config)
    if advice.verdict != "Worth it":
        return advice
    scenario = scenario_history.present(view).with_steps()
    key = f"split {view.digest}{view.variant} {position} {canonical_text(scenario)}"
    snapshot = view.captured if view.outcome is None else view.snapshot  # where the bundle has this position

    doubted = doubt(view)

    def look(_: Report, stopped: Stopped) -> SplitAdvice:
        return tried_split(Trials(snapshot, scenario, cancelled=stopped), position, doubted)

    found = tasks.answer(key, look, "Simulating the split")
    return replace(advice, verdict=_TRYING) if found is None else found


def _results(view: state.Current, outcome: SplitOutcome, command: SplitCommand, config: Settings) -> None:
    """Draw what Pulsar answers, the boundaries over the topics, the children, and the command."""
    snapshot = view.snapshot
    position = snapshot.bundle_position.get(outcome.bundle, -1)
    advice = _advice(view, position, config) if position >= 0 else None
    if advice is None:
        st.markdown(_explain(outcome, command))
    else:
        _BOXES[advice.verdict](f"**{advice.verdict}.** {plain(advice.sentence)}")
        _by_itself(view, position, config)
        table(options_frame(advice), "options", formats={"largest child keeps (%)": "%.0f"}, widths={"cut at": 260})
        _figure(snapshot, position, outcome, command)
        frame = children_frame(snapshot, position, outcome.boundaries, config)
        table(frame, "children", formats={"msg/s": "%.3f", "MiB/s": "%.3f"})
    for note in outcome.notes:
        st.caption(note)
    if any(reason.code.code == "split_manual.class_cast" for reason in outcome.reasons):
        st.caption("To see its boundaries, set it as defaultNamespaceBundleSplitAlgorithm under *Limits*.")
    _request(outcome, command, config, advice)


def options_frame(advice: SplitAdvice) -> pd.DataFrame:
    """Return one row for each way to split a bundle, the best first."""
    return pd.DataFrame(
        [
            {
                "algorithm": option.algorithm,
                "Pulsar": _SHORT[option.verdict],
                "largest child keeps (%)": option.largest * 100 if option.cuts else None,
                "children": len(option.cuts) + 1 if option.cuts else None,
                "cut at": ", ".join(f"0x{cut:08x}" for cut in option.cuts[:_SAID]) or option.why,
            }
            for option in advice.options
        ]
    )


def _request(outcome: SplitOutcome, command: SplitCommand, config: Settings, advice: SplitAdvice | None) -> None:
    """Draw a request that Pulsar follows: the one that was asked about, or the best one."""
    best = advice.best if advice is not None else None
    if advice is not None and advice.verdict == "Not worth it":
        st.caption("No request is recommended: a split is not worth it.")
        if outcome.verdict in {Verdict.SPLIT, Verdict.UNKNOWN}:
            with st.expander("The request all the same"):
                st.code(quoted(split_command(command)), language="sh", wrap_lines=True)
        return
    if outcome.verdict in {Verdict.SPLIT, Verdict.UNKNOWN}:
        st.markdown("**The request**")
    elif best is not None:
        st.markdown("**This request would not split anything. Use this one instead:**")
        named = "" if best.algorithm == config.text(DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM) else best.algorithm
        bundle = outcome.bundle.rpartition("/")[2]
        command = SplitCommand(command.namespace, bundle, named, best.positions, command.unload)
    else:
        st.caption("No request would split this bundle.")
        return
    st.code(quoted(split_command(command)), language="sh", wrap_lines=True)
    st.caption("The planner never changes a cluster. Run the command yourself.")


def _figure(snapshot: Snapshot, position: int, outcome: SplitOutcome, command: SplitCommand) -> None:
    """Draw the topics of the bundle at their hashes, as high as their rate or their throughput."""
    st.markdown(_explain(outcome, command))
    topics, rows = snapshot.topics, snapshot.topics.of_bundle(position)
    rate = topics.msg_rate_per_s(rows)
    throughput = topics.throughput_bytes_per_s(rows) / MIB
    heights = {"MiB/s": throughput, "msg/s": rate}
    unit = address.choice("height", "Height", list(heights), segments=True)
    largest = np.sort(np.argsort(-heights[unit], kind="stable")[:_DRAWN])
    cuts = ", ".join(f"0x{cut:08x}" for cut in outcome.boundaries[:_SAID])
    further = " and more" if len(outcome.boundaries) > _SAID else ""
    extent = f"{count(len(rows), 'topic')}{f' (showing the {_DRAWN:,} largest)' if len(rows) > _DRAWN else ''}"
    chart(
        topic_positions(
            (int(snapshot.bundles.low[position]), int(snapshot.bundles.high[position])),
            topics.hash[rows[largest]].astype(np.int64),
            heights[unit][largest],
            topics.name.take(rows[largest]).to_pylist(),
            unit,
            outcome.boundaries,
        ),
        f"{extent} by hash; {f'split at {cuts}{further}' if cuts else 'no split'}.",
        "split-lab",
    )


def _by_itself(view: state.Current, position: int, config: Settings) -> None:
    """Say whether Pulsar splits the bundle at its next check without being asked."""
    snapshot = view.snapshot
    if not config.flag(AUTO_BUNDLE_SPLIT_ENABLED):
        st.markdown("**No automatic splits:** loadBalancerAutoBundleSplitEnabled is off.")
        return
    name = snapshot.bundle_names[position]
    decision = state.splits(view, config)
    said = [
        reason
        for group in decision.reasons
        if (rows := np.flatnonzero(group.bundles == position)).size
        for reason in group.only(rows).rows(snapshot.brokers.name, snapshot.bundle_names)
    ]
    split = any(order.bundle == name for order in decision.splits)
    why = "; ".join(reason.text for reason in said) or "no broker reports this bundle"
    st.markdown(
        "**Automatic splits:** at the next check, Pulsar"
        f" {'splits this bundle' if split else 'does not split this bundle'}: {why}."
    )


def example_lines(algorithm: SplitAlgorithm) -> list[str]:
    """Return one line for each worked example of the documentation: what it says, and what Pulsar 4.2.4 does."""
    lines = []
    for example in algorithm.examples:
        computed = example.computed(algorithm)
        said, cuts = (", ".join(f"`0x{cut:08x}`" for cut in found) for found in (example.documented, computed))
        what = f"{format_range(example.low, example.high)}{f', {example.limits}' if example.limits else ''}"
        agrees = example.documented == computed
        lines.append(
            f"{what}: {cuts}, as documented."
            if agrees
            else f"{what}: the documentation says {said}; **Pulsar 4.2.4 splits at** {cuts}. {example.why}"
        )
    return lines


def _documentation(algorithm: SplitAlgorithm) -> None:
    """Draw the documentation's worked examples beside what the code does."""
    st.header("Worked examples of the documentation")
    st.markdown("\n".join(f"- {line}" for line in example_lines(algorithm)))
    show_notes(algorithm.differences, "Where the public documentation differs from the code")


PAGE = Page(
    title="Split lab",
    icon=":material/content_cut:",
    purpose="Whether a bundle is worth splitting, where it would be split, and which requests Pulsar refuses.",
    draw=draw,
    subject=Subject.DECISION,
    has_drawer=True,
)
