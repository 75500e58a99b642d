"""What the Split lab page draws."""

import numpy as np
import pandas as pd
import streamlit as st

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.decisions import ReasonBlock
from planner.cluster.errors import PlannerError, SettingError
from planner.cluster.ranges import FULL_HIGH, format_range
from planner.cluster.settings import Settings
from planner.cluster.snapshot import LoadManager, Snapshot
from planner.figures.hash_space import topic_positions
from planner.pulsar.admin_commands import quoted, split_command
from planner.pulsar.splitting import automatic_extensible, automatic_modular
from planner.pulsar.splitting.manual import HOT, LARGEST, SplitCommand, SplitOutcome, Verdict, answer
from planner.pulsar.splitting.protocol import SplitAlgorithm
from planner.pulsar.splitting.registry import SPLIT_ALGORITHMS, split_algorithm
from planner.web import state
from planner.web.setting_form import setting_form
from planner.web.text import count
from planner.web.widgets import chart, show_error, show_notes, table

_MOST_POSITIONS = 200
_BUNDLES_LISTED = 5_000
_DRAWN = 2_000
_SAID = 8
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


def _namespace(view: state.Current) -> str:
    snapshot = view.snapshot
    names = sorted(snapshot.namespaces)
    asked = state.param("namespace")
    busiest = int(np.argmax(_throughput(snapshot)))
    start = asked if asked in names else snapshot.namespaces[snapshot.bundles.namespace[busiest]]
    namespace = st.selectbox("Namespace", names, index=names.index(start), key=f"lab-ns-{view.digest}") or start
    state.set_params(namespace=namespace)
    return namespace


def _bundle(view: state.Current, namespace: str) -> str:
    """Draw the choice of a bundle: a range, or a word that stands for one."""
    snapshot = view.snapshot
    rows = np.flatnonzero(snapshot.bundles.namespace == snapshot.namespaces.index(namespace))
    rows = rows[np.argsort(snapshot.bundles.low[rows], kind="stable")][:_BUNDLES_LISTED]
    ranges = [format_range(int(snapshot.bundles.low[i]), int(snapshot.bundles.high[i])) for i in rows]
    offered = [*ranges, LARGEST, HOT]
    wanted = state.param("bundle")
    chosen = wanted if wanted in offered else ranges[int(np.argmax(_throughput(snapshot)[rows]))]
    help_ = "LARGEST: the most persistent topics. HOT: the highest long-term throughput."
    key = f"lab-bundle-{view.digest}-{namespace}"
    picked = st.selectbox("Bundle", offered, index=offered.index(chosen), key=key, help=help_) or chosen
    state.set_params(bundle=picked)
    return picked


def _throughput(snapshot: Snapshot) -> FloatArray:
    table_ = snapshot.bundles
    total: FloatArray = table_.msg_throughput_in_bytes_per_s + table_.msg_throughput_out_bytes_per_s
    return total


def _algorithm(view: state.Current) -> str:
    configured = view.snapshot.settings.text("defaultNamespaceBundleSplitAlgorithm")
    names = [a.name for a in SPLIT_ALGORITHMS]
    asked = state.param("algorithm")
    start = asked if asked in names else configured if configured in names else names[0]
    help_ = "Named in the request when it is not defaultNamespaceBundleSplitAlgorithm."
    picked = st.selectbox("Algorithm", names, index=names.index(start), key=f"lab-algorithm-{view.digest}", help=help_)
    state.set_params(algorithm="" if picked in {None, configured} else str(picked))
    return picked or start


def _positions() -> tuple[int, ...] | None:
    text = st.text_input(
        "Positions",
        state.param("positions"),
        placeholder="0x33000000, 0x66000000",
        max_chars=3_000,
        key="positions",
        help="Where specified_positions_divide cuts, in hexadecimal or decimal.",
    )
    state.set_params(positions=text)
    return read_positions(text) or None


def _explain(outcome: SplitOutcome, command: SplitCommand) -> str:
    status = f" (HTTP {outcome.status})" if outcome.status is not None else ""
    failed = f" {outcome.error.what}" if outcome.error is not None else ""
    more = len(outcome.reasons) - _SAID
    lines = [f"**{command.bundle} {_VERDICTS[outcome.verdict]}{status}.**{failed}\n"]
    lines += [f"- {reason.text}" for reason in outcome.reasons[:_SAID]]
    return "\n".join([*lines, f"- and {more} more"] if more > 0 else lines)


def _settings(view: state.Current, algorithm: SplitAlgorithm) -> Settings:
    """Draw the form: what the algorithm reads, and the limits of automatic splitting."""
    modular = view.snapshot.info.load_manager is LoadManager.MODULAR
    automatic = automatic_modular.SETTINGS if modular else automatic_extensible.SETTINGS
    own = (*algorithm.settings, "defaultNamespaceBundleSplitAlgorithm", "supportedNamespaceBundleSplitAlgorithms")
    rest = tuple(name for name in automatic if name not in own)
    request, by_itself = st.tabs(["Request", "Automatic splits"])
    with request:
        chosen = setting_form(own, view.snapshot.settings, f"lab-{view.digest}-{algorithm.name}", columns=1)
    with by_itself:
        form = setting_form(rest, view.snapshot.settings, f"lab-{view.digest}", columns=1)
    return chosen.changed(**{name: form[name] for name in rest})


def draw(view: state.Current) -> None:
    """Draw the page: choices on top, results beside the limits; in a narrow window results come first."""
    snapshot = view.snapshot
    if not len(snapshot.bundles):
        st.info("The snapshot has no bundles.", icon=":material/grid_off:")
        return
    left, middle, right = st.columns(3)
    with left:
        namespace = _namespace(view)
    with middle:
        bundle = _bundle(view, namespace)
    with right:
        picked = _algorithm(view)
    results, limits = st.columns([2, 1], gap="large")
    algorithm = split_algorithm(picked)
    try:
        with results:
            st.caption(algorithm.summary)
            positions = _positions() if algorithm.needs_positions else None
        with limits:
            st.subheader("Limits")
            config = _settings(view, algorithm)
        default = config.text("defaultNamespaceBundleSplitAlgorithm")
        command = SplitCommand(namespace, bundle, "" if picked == default else picked, positions)
        outcome = answer(snapshot, command, config)
        with results:
            _results(view, outcome, command, config)
    except PlannerError as error:
        with results:
            show_error(error)
    _documentation(algorithm)


def _results(view: state.Current, outcome: SplitOutcome, command: SplitCommand, config: Settings) -> None:
    """Draw what Pulsar answers, the boundaries over the topics, the children, and the command."""
    snapshot = view.snapshot
    position = snapshot.bundle_position.get(outcome.bundle, -1)
    if position < 0:
        st.markdown(_explain(outcome, command))
    else:
        _figure(snapshot, position, outcome, command)
        number = st.column_config.NumberColumn(format="%.3f")
        frame = children_frame(snapshot, position, outcome.boundaries, config)
        table(frame, "children", column_config={"msg/s": number, "MiB/s": number})
        _by_itself(view, position, config)
    for note in outcome.notes:
        st.caption(note)
    if any(reason.code.code == "split_manual.class_cast" for reason in outcome.reasons):
        st.caption("Make it defaultNamespaceBundleSplitAlgorithm among the limits to see where it would cut.")
    st.markdown("**The request**")
    st.code(quoted(split_command(command)), language="sh", wrap_lines=True)
    st.caption("The planner never changes a cluster; run the command yourself.")


def _figure(snapshot: Snapshot, position: int, outcome: SplitOutcome, command: SplitCommand) -> None:
    """Draw the topics of the bundle at their hashes, as high as their rate or their throughput."""
    st.markdown(_explain(outcome, command))
    topics, rows = snapshot.topics, snapshot.topics.of_bundle(position)
    rate = topics.msg_rate_in_per_s[rows] + topics.msg_rate_out_per_s[rows]
    throughput = (topics.msg_throughput_in_bytes_per_s[rows] + topics.msg_throughput_out_bytes_per_s[rows]) / 2**20
    heights = {"MiB/s": throughput, "msg/s": rate}
    asked = state.param("height")
    start = asked if asked in heights else "MiB/s"
    unit = st.segmented_control("Height", list(heights), default=start, key="lab-height") or start
    state.set_params(height="" if unit == "MiB/s" else unit)
    largest = np.sort(np.argsort(-heights[unit], kind="stable")[:_DRAWN])
    cuts = ", ".join(f"0x{cut:08x}" for cut in outcome.boundaries[:_SAID])
    further = " and further" if len(outcome.boundaries) > _SAID else ""
    shown = f"{count(len(rows), 'topic')}{f', the {_DRAWN:,} largest drawn' if len(rows) > _DRAWN else ''}"
    chart(
        topic_positions(
            (int(snapshot.bundles.low[position]), int(snapshot.bundles.high[position])),
            topics.hash[rows[largest]].astype(np.int64),
            heights[unit][largest],
            topics.name.take(rows[largest]).to_pylist(),
            unit,
            outcome.boundaries,
        ),
        f"{shown} at their hashes; {f'cut at {cuts}{further}' if cuts else 'no cut'}.",
        "split-lab",
    )


def _by_itself(view: state.Current, position: int, config: Settings) -> None:
    """Say whether Pulsar splits the bundle at its next check without being asked."""
    snapshot = view.snapshot
    if not config.flag("loadBalancerAutoBundleSplitEnabled"):
        st.markdown("**By itself** Pulsar splits nothing: loadBalancerAutoBundleSplitEnabled is off.")
        return
    name = snapshot.bundle_names[position]
    decision = state.splits(view, config)
    said = [
        reason
        for group in decision.reasons
        if (rows := np.flatnonzero(group.bundles == position)).size
        for reason in _only(group, rows).rows(snapshot.brokers.name, snapshot.bundle_names)
    ]
    split = any(order.bundle == name for order in decision.splits)
    why = "; ".join(reason.text for reason in said) or "no broker reports it"
    st.markdown(f"**By itself** Pulsar {'splits it' if split else 'does not split it'} at the next check: {why}.")


def _only(group: ReasonBlock, rows: Int64Array) -> ReasonBlock:
    values = group.values[rows]  # noqa: PD011 - no table of pandas
    return ReasonBlock(group.code, group.brokers[rows], group.bundles[rows], values, group.others[rows])


def example_lines(algorithm: SplitAlgorithm) -> list[str]:
    """Return one line for each worked example of the documentation: what it says, and what Pulsar 4.2.4 does."""
    lines = []
    for example in algorithm.examples:
        computed = example.computed(algorithm)
        said, cuts = (", ".join(f"`0x{cut:08x}`" for cut in found) for found in (example.documented, computed))
        what = f"{format_range(example.low, example.high)}{f', {example.limits}' if example.limits else ''}"
        agrees = example.documented == computed
        lines.append(
            f"{what}: {cuts}, as the page says."
            if agrees
            else f"{what}: the page says {said}; **Pulsar 4.2.4 cuts at** {cuts}. {example.why}"
        )
    return lines


def _documentation(algorithm: SplitAlgorithm) -> None:
    """Draw the documentation's worked examples beside what the code does."""
    st.subheader("The documentation's worked examples")
    st.markdown("\n".join(f"- {line}" for line in example_lines(algorithm)))
    show_notes(algorithm.differences, "Where the public documentation differs from the code")
