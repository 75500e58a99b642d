"""What another release of Pulsar does with a cluster: settings, rules, the first hours, and how to get there.

Settings that a snapshot has at the default of its own release count as not set: a capture tells the values in force,
not who gave them. After an upgrade they have the defaults of the new release, unless today's value is kept.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from planner.cluster.internal_namespaces import SLA_OF_CLUSTER, is_heartbeat_or_sla_namespace
from planner.cluster.names import SHEDDING_INTERVAL_MINUTES
from planner.cluster.release_notes import differing, rule_sentence
from planner.cluster.releases import RELEASES, UPGRADED_TO, Release, ReleaseName, Switch, is_newer, release
from planner.cluster.setting import SettingValue, conf_value
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.switches import HELD_SWITCHES
from planner.cluster.text import count
from planner.cluster.topic_names import FOUR_PARTS
from planner.cluster.units import MIN_PER_HOUR
from planner.explain.doubt import NO_DOUBT, doubt_in_any
from planner.explain.outcome import Outcome
from planner.explain.upgrade_blockers import blockers, namespaces_with_cluster
from planner.pulsar.manager.cycle import effective_shedder
from planner.pulsar.manager.pairing import running_placement
from planner.pulsar.release_rules import RELEASE_RULES
from planner.pulsar.throttling.async_token_bucket import OVERFLOWS
from planner.simulate.admin_commands import PROGRAM, DynamicChange, setting_command
from planner.simulate.judge import Result, Verdict, Word, judge
from planner.simulate.moves import relocations
from planner.simulate.scenario import Scenario
from planner.simulate.trace import Trace

Happens: TypeAlias = Literal["vanishes", "takes effect", "is new", "other default"]
"""What an upgrade does to a setting: it has no effect any more; it was set already and now has one; it comes with a
default that acts otherwise than the release without it; its default is another one."""

When: TypeAlias = Literal["before", "during", "after"]
"""When a step is taken: before, while or after brokers are restarted on the new release."""

_THROTTLING: Final = "dispatchThrottling"


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that is another one after an upgrade.

    Attributes:
        name: Its name in `broker.conf`.
        happens: What happens to it.
        before: Value that is in force today, or what today's release does without it.
        after: The same of the new release.
        given: Whether the cluster sets it; False when it relies on the default.
        meaning: What it is.
        keep: Whether today's value can be set on the new release.
        balances: Whether it can decide where bundles go; a limit of dispatch does where the scenario changes one.
    """

    name: str
    happens: Happens
    before: SettingValue
    after: SettingValue
    given: bool
    meaning: str
    keep: bool
    balances: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the way to another release.

    Attributes:
        when: When it is taken.
        what: What to do, and why.
        lines: Lines of `broker.conf`, or commands of `pulsar-admin`.
    """

    when: When
    what: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What is asked, and what is known of it before anything is simulated.

    Attributes:
        source: Release that decides today.
        target: Release that is asked about.
        settings: The settings that are others.
        rules: Rules that one of the two releases has, and that concern this cluster; one sentence each.
        other_rules: Likewise, but of strategies that do not run here, or about what this cluster has not.
        blockers: What has to be changed before, as the other release cannot run the cluster so.
        strategies: Shedding and placement strategies in force today, and after the upgrade.
        today: The scenario without the upgrade.
        after: The same on the other release.
        kept: The same there with today's values of all settings that can be kept.
    """

    source: Release
    target: Release
    settings: tuple[SettingChange, ...]
    rules: tuple[str, ...]
    other_rules: tuple[str, ...]
    blockers: tuple[str, ...]
    strategies: tuple[tuple[str, str], tuple[str, str]]
    today: Scenario
    after: Scenario
    kept: Scenario

    @property
    def to_keep(self) -> dict[str, str]:
        """Settings with which the new release acts as today, as `broker.conf` writes them."""
        return {one.name: conf_value(one.before) for one in self.settings if one.keep}

    @property
    def is_same(self) -> bool:
        """Whether nothing that differs decides where the bundles of this cluster go: it is balanced alike then."""
        return not self.rules and not any(one.balances for one in self.settings)

    @property
    def runs(self) -> dict[str, Scenario]:
        """What there is to simulate, by its name: no scenario twice."""
        found = {f"{self.source.name}, today": self.today}
        if not self.is_same:
            found[self.target.name] = self.after
        if self.to_keep and not self.is_same:
            found[f"{self.target.name}, today's values"] = self.kept
        return found


def next_release(version: str) -> ReleaseName:
    """Return the release that an upgrade of a cluster is asked about first: the next newer one that people stay on."""
    own = release(version).name
    return next((name for name in UPGRADED_TO if is_newer(name, own)), UPGRADED_TO[-1])


def upgraded(scenario: Scenario, snapshot: Snapshot, target: ReleaseName) -> Scenario:
    """Return a scenario on another release, where settings at the default of the own release follow the new default.

    Raises:
        SettingError: A value of the scenario is out of bounds there.
    """
    return replace(scenario, pulsar_version=target, settings={**_followed(snapshot, target), **scenario.settings})


def before_upgrade(scenario: Scenario, snapshot: Snapshot) -> Scenario:
    """Return a scenario on the cluster's own release; what `upgraded` added is taken out."""
    followed = _followed(snapshot, scenario.release_over(snapshot).name)
    own = {name: value for name, value in scenario.settings.items() if followed.get(name) != value}
    return replace(scenario, pulsar_version=release(snapshot.info.pulsar_version).name, settings=own)


def _followed(snapshot: Snapshot, target: ReleaseName) -> dict[str, str]:
    own, new = release(snapshot.info.pulsar_version).settings, release(target).settings
    return {
        name: conf_value(new[name].default)
        for name, value in snapshot.settings.overrides.items()
        if name in own and name in new and value == own[name].default != new[name].default
    }


def upgrade_of(snapshot: Snapshot, scenario: Scenario, target: ReleaseName) -> Upgrade:
    """Return what is known of an upgrade before anything is simulated; an older target is a downgrade.

    The scenario says what is changed besides, and which release decides today.

    Raises:
        SettingError: A value of the scenario is out of bounds.
    """
    after = upgraded(scenario, snapshot, target)
    now, then = scenario.settings_over(snapshot), after.settings_over(snapshot)
    changes = tuple(setting_changes(now, then, scenario.settings))
    keep = {one.name: conf_value(one.before) for one in changes if one.keep}
    manager = scenario.load_manager_over(snapshot)
    running = [(effective_shedder(manager, config)[0], running_placement(manager, config)) for config in (now, then)]
    classes = {type(one) for pair in running for one in pair}
    rules: list[str] = []
    others: list[str] = []
    for switch in differing(now.release, then.release, RELEASE_RULES):
        here = _concerns(switch, classes, snapshot, now, then)
        (rules if here else others).append(rule_sentence(switch, now.release, then.release))
    return Upgrade(
        now.release,
        then.release,
        changes,
        tuple(rules),
        tuple(others),
        tuple(blockers(snapshot, now, then)),
        ((running[0][0].name, running[0][1].name), (running[1][0].name, running[1][1].name)),
        scenario,
        after,
        replace(after, settings={**after.settings, **keep}),
    )


def _concerns(switch: Switch, running: set[type], snapshot: Snapshot, now: Settings, then: Settings) -> bool:
    """Say whether a rule can decide anything about a cluster."""
    followers = RELEASE_RULES.switches[switch]
    if followers:
        return not running.isdisjoint(followers)
    if switch is SLA_OF_CLUSTER:
        text = (
            {n for n in snapshot.namespaces if n.count("/") == 1 and is_heartbeat_or_sla_namespace(n, config.release)}
            for config in (now, then)
        )
        return next(text) != next(text)
    if switch is FOUR_PARTS:
        return bool(namespaces_with_cluster(snapshot))
    return switch is not OVERFLOWS or _limits_dispatch(snapshot, now)


def _limits_dispatch(snapshot: Snapshot, config: Settings) -> bool:
    """Say whether any limit of dispatch is in force."""
    names = [n for n in config if n.startswith(_THROTTLING) and n.endswith(("InMsg", "InByte"))]
    return any(config.integer(name) > 0 for name in names) or bool(snapshot.policies.dispatch_rates)


def setting_changes(now: Settings, then: Settings, changed: Collection[str] = ()) -> Sequence[SettingChange]:
    """Return the settings that are others under another release, those that the cluster sets first.

    `changed` names what a scenario changes besides.
    """
    known = {**then.release.others, **now.release.others, **then.release.settings, **now.release.settings}
    found = []
    for name, setting in known.items():
        own, new = now.release.settings.get(name), then.release.settings.get(name)
        overrides = now.overrides.get(name)
        given = name in now.overrides and (own is None or overrides != own.default)
        before, after = now[name], then[name]
        happens: Happens
        if own is not None and new is None:
            if not given and before == after:
                continue
            happens = "vanishes"
        elif before == after:
            continue
        elif own is None:
            happens = "takes effect" if given else "is new"
        else:
            happens = "other default"
        balances = setting.group == "load balancer" or any(other.startswith(_THROTTLING) for other in changed)
        found.append(SettingChange(name, happens, before, after, given, setting.meaning, new is not None, balances))
    return sorted(found, key=lambda one: not one.given)


@dataclass(frozen=True, slots=True)
class RunNumbers:
    """A run in the numbers that an upgrade is judged by.

    Attributes:
        moves: Bundles that went to another broker, each as often as it did.
        splits: Bundles that were split.
        topics: Topics that were cut off, each as often as it was.
        clients: Producers and consumers, likewise.
        peak_percent: Highest usage of a broker at the end.
        deviation_points: Standard deviation of the usage at the end.
        plan: Digest of what happened.
    """

    moves: int
    splits: int
    topics: int
    clients: int
    peak_percent: float
    deviation_points: float
    plan: str

    @staticmethod
    def of(trace: Trace, result: Result) -> "RunNumbers":
        """Return a run in numbers, those of the judge where the judge weighs them."""
        return RunNumbers(
            len(relocations(trace)),
            sum(event.kind == "split" for event in trace.events),
            result.topics,
            result.clients,
            result.end_peak_percent,
            result.deviation_points,
            trace.digest(),
        )

    @property
    def does(self) -> str:
        """The numbers in words, as what a release does."""
        return (
            f"makes {count(self.moves, 'move')} and {count(self.splits, 'split')}, disconnects"
            f" {count(self.topics, 'topic')} and {count(self.clients, 'client')}, and ends with a highest usage of"
            f" {self.peak_percent:.1f} % and a deviation of {self.deviation_points:.1f} points"
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """What a cluster does in the same time without and with an upgrade.

    Attributes:
        answer: Whether the other release is better for the cluster, by the judge of outcomes, and why.
        word: The answer of the judge; `unknown` where no usage is true.
        sentence: Both in words.
        same_moves: Bundles that go from the same broker to the same one in both.
        kept: What today's values come to; empty where there is nothing to keep, or it was not simulated.
    """

    answer: str
    word: Word | Literal["unknown"]
    sentence: str
    same_moves: int
    kept: str


def _answer(target: str, verdict: Verdict | None) -> tuple[str, Word]:
    """Return what the judge says of the other release; of the same plan, None, that there is no difference."""
    if verdict is None or verdict.word == "same":
        return f"{target} is neither better nor worse for this cluster.", "same"
    word = "a trade-off" if verdict.word == "trade-off" else verdict.word
    return f"{target} is {word} for this cluster: {verdict.text.partition(': ')[2]}", verdict.word


def difference(
    upgrade: Upgrade, traces: Sequence[Trace], runs: Sequence[RunNumbers], results: Sequence[Result]
) -> Difference:
    """Compare what the runs of `Upgrade.runs` came to, in their order, in numbers, and as the judge measures them."""
    first = f"In the first {_span(traces[0])}, Pulsar {upgrade.source.name} {runs[0].does}"
    if len(runs) == 1:
        sentence = (
            f"{first}. {upgrade.target.name} behaves the same for this cluster: no difference affects its bundles."
        )
        return Difference(*_answer(upgrade.target.name, None), sentence, runs[0].moves, "")
    one, two = (Counter((m.bundle, m.source, m.destination) for m in relocations(trace)) for trace in traces[:2])
    same = (one & two).total()
    verdict = None
    if runs[0].plan == runs[1].plan:
        sentence = f"{first}. {upgrade.target.name} makes exactly the same moves."
    else:
        alike = f"; {count(same, 'move')} {'is' if same == 1 else 'are'} the same" if one and two else ""
        sentence = f"{first}; {upgrade.target.name} {runs[1].does}{alike}."
        verdict = judge(results[0], results[1])
    doubt = doubt_in_any(map(Outcome, traces)) if verdict is not None else NO_DOUBT
    if doubt.everywhere:
        said = f"Whether {upgrade.target.name} is better or worse for this cluster is not known. {doubt.sentence}"
        return Difference(said, "unknown", sentence, same, _kept([run.plan for run in runs]))
    said, word = _answer(upgrade.target.name, verdict)
    return Difference(f"{said} {doubt.sentence}".rstrip(), word, sentence, same, _kept([run.plan for run in runs]))


def _kept(plans: Sequence[str]) -> str:
    """Return the effect of keeping today's values, by the digests of what happened today, after and with them."""
    if len(plans) <= 2:  # noqa: PLR2004 - today and after
        return ""
    today, after, kept = plans
    if kept == today:
        return "With today's values, the result is exactly the same as today."
    if kept == after:
        return "Keeping today's values does not change this: the rules differ, and no setting restores the old ones."
    return (
        "Keeping today's values does not remove every difference: some rules differ, and no setting restores the old"
        " ones."
    )


def _span(trace: Trace) -> str:
    minutes = len(trace.cycles) * max(trace.settings.integer(SHEDDING_INTERVAL_MINUTES), 1)
    if minutes % MIN_PER_HOUR:
        return count(minutes, "minute")
    hours = minutes // MIN_PER_HOUR
    return "hour" if hours == 1 else count(hours, "hour")


def cycles_of(hours: int, config: Settings) -> int:
    """Return the shedding cycles of some hours."""
    return max(hours * MIN_PER_HOUR // max(config.integer(SHEDDING_INTERVAL_MINUTES), 1), 1)


def steps_of(upgrade: Upgrade, snapshot: Snapshot) -> tuple[Step, ...]:
    """Return the way to the other release, in the order in which to go it. Nothing is carried out."""
    return (*_before(upgrade), *_during_and_after(upgrade, snapshot))


def _before(upgrade: Upgrade) -> Iterator[Step]:
    source, target = upgrade.source.name, upgrade.target.name
    for blocker in upgrade.blockers:
        yield Step("before", f"Blocker: {blocker}")
    way = _on_the_way(source, target)
    if way:
        what = (
            f"Upgrade through {', then '.join(way)}: Pulsar supports upgrades only from one long-term release to the"
            " next."
        )
        yield Step("before", what)
    gone = [one for one in upgrade.settings if one.happens == "vanishes" and one.given]
    if gone:
        dynamic = [one.name for one in gone if upgrade.source.settings[one.name].dynamic]
        yield Step(
            "before",
            f"{target} does not have {', '.join(one.name for one in gone)}. Lines in broker.conf may stay; they are"
            f" ignored. Delete dynamic values while {source} is running, because {target} rejects the command.",
            tuple(f"pulsar-admin brokers delete-dynamic-config --config {name}" for name in dynamic),
        )
    if upgrade.to_keep:
        yield Step(
            "before",
            "To keep today's behaviour, add this to broker.conf (or the environment) of every broker before it"
            f" restarts. {source} already behaves this way, or ignores the setting.",
            tuple(f"{name}={value}" for name, value in upgrade.to_keep.items()),
        )


def _on_the_way(source: ReleaseName, target: ReleaseName) -> list[str]:
    """Return the long-term releases between two: a major version begins with one, such as 4.0."""
    older, newer = sorted((source, target), key=RELEASES.index)
    low, high = (release(name).major for name in (older, newer))
    last = high if newer.startswith(f"{high}.0.") else high + 1
    way = [f"{major}.0" for major in range(low + 1, last)]
    return way if source == older else way[::-1]


def _during_and_after(upgrade: Upgrade, snapshot: Snapshot) -> Iterator[Step]:
    config = upgrade.today.settings_over(snapshot)
    held = [] if upgrade.is_same else [name for name in HELD_SWITCHES if config.flag(name)]
    overridden = snapshot.info.dynamic_settings or {}

    def line(name: str, value: str) -> str:
        change = DynamicChange(name=name, value=value, before="true", role="asked")
        return setting_command("settings", PROGRAM, change).line

    if held:
        yield Step(
            "during",
            "Hold shedding and splitting: while two releases run side by side, the release of the current leader"
            " decides.",
            tuple(line(name, "false") for name in held),
        )
    leader = snapshot.info.leader
    last = f", the leader ({leader}) last, so that the leader changes only once" if leader else ", the leader last"
    what = f"Restart the brokers on {upgrade.target.name} one after the other{last}."
    yield Step(
        "during", f"{what} Before that, upgrade bookies and metadata stores as described in Pulsar's upgrade guide."
    )
    if held:
        what = "When all brokers run the new release and serve their bundles, turn shedding and splitting on again."
        back = [line(name, value) for value in ("true", "") for name in held if value or name not in overridden]
        if len(back) > len(held):
            what += " After the override is deleted, the value in broker.conf applies again."
        yield Step("after", what, tuple(back))
    yield Step(
        "after",
        "Capture the cluster again and repeat this comparison: restarted brokers have handed over their bundles.",
    )
    if upgrade.to_keep:
        yield Step(
            "after",
            "New defaults exist for a reason: remove the values that you kept one by one, and check each removal"
            " with What-if first.",
        )
