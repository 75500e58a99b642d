"""What the Split lab page draws."""

import numpy as np
import pandas as pd
import streamlit as st

from planner.figures.hash_space import topic_positions
from planner.model.errors import PlannerError, SettingError
from planner.model.ranges import FULL_HIGH, format_range, parse_range
from planner.model.settings import Settings
from planner.model.snapshot import Snapshot
from planner.splitting.manual import SplitCommand, SplitOutcome, Verdict, answer
from planner.splitting.registry import SPLIT_ALGORITHMS, split_algorithm
from planner.web import state
from planner.web.documentation import SPLIT_DIFFERENCES
from planner.web.setting_form import setting_form
from planner.web.text import count
from planner.web.widgets import chart, show_error, show_notes, table

__all__ = ["children_frame", "command_line", "draw", "read_positions"]

_MOST_POSITIONS = 200
_BUNDLES_LISTED = 5_000
_VERDICTS = {
    Verdict.SPLIT: "is split",
    Verdict.UNCHANGED: "stays as it is, though the request succeeds",
    Verdict.REFUSED: "is not split: Pulsar refuses the request",
    Verdict.UNANSWERED: "is not split, and Pulsar never answers the request",
    Verdict.UNKNOWN: "may be split: that depends on topics which the snapshot does not list",
}


def read_positions(text: str) -> tuple[int, ...]:
    """Read positions such as `0x33000000, 858993459`.

    Raises:
        SettingError: One is no number within the hash space, or there are too many.
    """
    words = [w for w in text.replace(",", " ").split() if w]
    if len(words) > _MOST_POSITIONS:
        raise SettingError("Too many positions.", where="Positions", remedy=f"Give at most {_MOST_POSITIONS}.")
    found = []
    for word in words:
        try:
            number = int(word, 16) if word.lower().startswith("0x") else int(word)
        except ValueError:
            number = -1
        if not 0 <= number <= FULL_HIGH:
            remedy = "Write 0x33000000 or 855638016, with commas between."
            raise SettingError(f"'{word[:40]}' is no place in the hash space.", where="Positions", remedy=remedy)
        found.append(number)
    return tuple(found)


def children_frame(snapshot: Snapshot, bundle: int, cuts: tuple[int, ...], config: Settings) -> pd.DataFrame:
    """Return one row for the bundle and one for each child: topics, traffic, and whether it is still too hot."""
    low, high = int(snapshot.bundles.low[bundle]), int(snapshot.bundles.high[bundle])
    rows = snapshot.topics.of_bundle(bundle)
    hashes = snapshot.topics.hash[rows].astype(np.int64)
    topics = snapshot.topics
    rate = topics.msg_rate_in_per_s[rows] + topics.msg_rate_out_per_s[rows]
    throughput = topics.msg_throughput_in_bytes_per_s[rows] + topics.msg_throughput_out_bytes_per_s[rows]
    limits = (
        config.integer("loadBalancerNamespaceBundleMaxTopics"),
        config.integer("loadBalancerNamespaceBundleMaxMsgRate"),
        config.integer("loadBalancerNamespaceBundleMaxBandwidthMbytes"),
    )
    made = []
    ranges = [(low, high), *zip((low, *cuts), (*cuts, high), strict=True)] if cuts else [(low, high)]
    for at, (start, stop) in enumerate(ranges):
        inside = (hashes >= start) & ((hashes < stop) | (stop == FULL_HIGH))
        values = (int(inside.sum()), float(rate[inside].sum()), float(throughput[inside].sum()) / 2**20)
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


def command_line(command: SplitCommand) -> str:
    """Return the `pulsar-admin` command that makes the request."""
    words = ["pulsar-admin namespaces split-bundle", command.namespace, "-b", command.bundle]
    if command.unload:
        words.append("-u")
    if command.algorithm:
        words += ["-san", command.algorithm]
    for position in command.positions or ():
        words += ["-sb", str(position)]
    return " ".join(words)


def _choose(snapshot: Snapshot) -> tuple[str, str]:
    """Return namespace and range in view."""
    names = sorted(snapshot.namespaces)
    asked = state.param("namespace")
    counts = snapshot.bundles.msg_throughput_in_bytes_per_s + snapshot.bundles.msg_throughput_out_bytes_per_s
    busiest = int(np.argmax(counts))
    start = asked if asked in names else snapshot.namespaces[snapshot.bundles.namespace[busiest]]
    left, right = st.columns(2)
    namespace = left.selectbox("Namespace", names, index=names.index(start), key=f"lab-ns-{start}") or start
    rows = np.flatnonzero(snapshot.bundles.namespace == snapshot.namespaces.index(namespace))
    rows = rows[np.argsort(snapshot.bundles.low[rows], kind="stable")][:_BUNDLES_LISTED]
    ranges = [format_range(int(snapshot.bundles.low[i]), int(snapshot.bundles.high[i])) for i in rows]
    wanted = state.param("bundle")
    chosen = wanted if wanted in ranges else ranges[int(np.argmax(counts[rows]))]
    picked = right.selectbox("Bundle", ranges, index=ranges.index(chosen), key=f"lab-bundle-{namespace}-{chosen}")
    state.set_params(namespace=namespace, bundle=picked or chosen)
    return namespace, picked or chosen


def _command(snapshot: Snapshot, namespace: str, bundle: str) -> SplitCommand:
    default = snapshot.settings.text("defaultNamespaceBundleSplitAlgorithm")
    names = [a.name for a in SPLIT_ALGORITHMS]
    asked = state.param("algorithm")
    start = asked if asked in names else default if default in names else names[0]
    picked = st.selectbox("Algorithm", names, index=names.index(start), key=f"lab-algorithm-{start}") or start
    state.set_params(algorithm="" if picked == default else picked)
    st.caption(split_algorithm(picked).summary)
    positions: tuple[int, ...] | None = None
    if picked == "specified_positions_divide":
        text = st.text_input(
            "Positions",
            state.param("positions"),
            placeholder="0x33000000, 0x66000000",
            max_chars=3_000,
            key="positions",
        )
        state.set_params(positions=text)
        positions = read_positions(text) or None
    return SplitCommand(namespace, bundle, "" if picked == default else picked, positions)


def _explain(outcome: SplitOutcome, command: SplitCommand) -> str:
    status = f" (HTTP {outcome.status})" if outcome.status is not None else ""
    reasons = "; ".join(r.text for r in outcome.reasons[:8])
    failed = f" {outcome.error.what}" if outcome.error is not None else ""
    return f"**{command.bundle} {_VERDICTS[outcome.verdict]}{status}.**{failed} {reasons}"


def draw(view: state.Current) -> None:
    """Draw the page."""
    snapshot = view.snapshot
    if not len(snapshot.bundles):
        st.info("The snapshot has no bundles.", icon=":material/grid_off:")
        return
    namespace, bundle = _choose(snapshot)
    try:
        command = _command(snapshot, namespace, bundle)
        algorithm = split_algorithm(command.algorithm or snapshot.settings.text("defaultNamespaceBundleSplitAlgorithm"))
        names = (
            *algorithm.settings,
            *(() if algorithm.settings else ("loadBalancerNamespaceBundleMaxMsgRate",)),
            "loadBalancerNamespaceBundleMaxTopics",
        )
        with st.expander("Limits", expanded=bool(algorithm.settings)):
            config = setting_form(tuple(dict.fromkeys(names)), snapshot.settings, f"lab-{view.digest}")
        outcome = answer(snapshot, command, config)
    except PlannerError as error:
        show_error(error)
        return
    low, high = parse_range(bundle)
    position = snapshot.bundle_position[f"{namespace}/{bundle}"]
    rows = snapshot.topics.of_bundle(position)
    rows = rows[np.argsort(snapshot.topics.hash[rows], kind="stable")][:2_000]
    topics = snapshot.topics
    traffic = topics.msg_throughput_in_bytes_per_s[rows] + topics.msg_throughput_out_bytes_per_s[rows]
    chart(
        topic_positions(
            (low, high),
            topics.hash[rows].astype(np.int64),
            traffic / 2**20,
            topics.name.take(rows).to_pylist(),
            "MiB/s",
            outcome.boundaries,
        ),
        _explain(outcome, command),
        "split-lab",
    )
    st.caption(f"{count(len(rows), 'topic')} drawn at their hashes; dashed lines are the new boundaries.")
    for note in outcome.notes:
        st.caption(note)
    table(children_frame(snapshot, position, outcome.boundaries, config), "children")
    show_notes(SPLIT_DIFFERENCES.get(algorithm.name, ()), "Where the public documentation differs from the code")
    st.markdown("**The request**")
    st.code(command_line(command), language="sh")
    st.caption("The planner never changes a cluster; run the command yourself.")
