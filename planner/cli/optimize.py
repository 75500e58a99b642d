"""`python -m planner optimize`: the best plan for a cluster, and how far from the best possible it is."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from planner.cli.output import SHOWN, opened, show_price, warn, warn_switched_off, write_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.cluster.snapshot import Snapshot
    from planner.optimize.offer import Offer
    from planner.optimize.waves import Wave
    from planner.share.carry_out import Basis
    from planner.share.commands import CommandOptions

_SHORT = 12


def optimize(
    *,
    snapshot: Annotated[str, Parameter(metavar="PATH_OR_SAMPLE")],
    moves: Annotated[int | None, Parameter(metavar="N")] = None,
    topics: Annotated[int | None, Parameter(metavar="N")] = None,
    clients: Annotated[int | None, Parameter(metavar="N")] = None,
    megabytes: Annotated[float | None, Parameter(metavar="MB_PER_S")] = None,
    under: Annotated[float | None, Parameter(metavar="PERCENT")] = None,
    least: Literal["moves", "topics", "clients", "bytes_per_s"] = "clients",
    drain: Annotated[tuple[str, ...], Parameter(metavar="BROKER")] = (),
    exclude: Annotated[tuple[str, ...], Parameter(metavar="BROKER")] = (),
    keep: Annotated[tuple[str, ...], Parameter(metavar="NAMESPACE")] = (),
    pin: Annotated[tuple[str, ...], Parameter(metavar="BUNDLE=BROKER")] = (),
    even: bool = False,
    splits: Annotated[int | None, Parameter(metavar="N")] = None,
    traffic: Annotated[float, Parameter(metavar="FACTOR")] = 1.0,
    scenario: Annotated[str | None, Parameter(metavar="FILE_OR_LINK", allow_leading_hyphen=True)] = None,
    after_cycles: bool = False,
    survive_loss: bool = False,
    seed: int = 0,
    wave_clients: Annotated[int, Parameter(metavar="N")] = 1_000,
    pause: Annotated[int, Parameter(metavar="S")] = 60,
    as_json: Annotated[bool, Parameter(name="--json", group=SHOWN)] = False,
    commands: Annotated[bool, Parameter(group=SHOWN)] = False,
    back: Annotated[bool, Parameter(group=SHOWN)] = False,
    csv: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    save: Annotated[Path | None, Parameter(metavar="FILE")] = None,
) -> None:
    """Find the best plan for a cluster.

    Finds the moves that give the lowest highest usage within a budget; with --under, the plan with the least harm that
    brings every broker under a usage; with --drain, the moves that empty a broker. Prints the lower bound, whether
    Pulsar undoes the plan, and how to carry it out. Nothing is carried out. Exit status: 0 done, 2 the question has no
    answer.

    Args:
        snapshot: A snapshot (folder, .zip, .json), a raw capture, or a sample by its file name, title or digest.
        moves: Most bundles to move.
        topics: Most topics to disconnect.
        clients: Most producers and consumers to disconnect.
        megabytes: Most throughput to interrupt.
        under: Bring every broker under this usage with the least harm.
        least: Unit in which harm is counted.
        drain: A broker to empty; may be repeated.
        exclude: A broker that receives no bundles; may be repeated.
        keep: A namespace whose bundles do not move; may be repeated.
        pin: A bundle, and the broker that must own it; may be repeated.
        even: Apply loadBalancerDistributeBundlesEvenlyEnabled, which an unload with a destination ignores by default.
        splits: Most bundles to split; by default a few, if a single bundle is above the limit.
        traffic: Plan for the traffic times this factor.
        scenario: Plan for the cluster with the edits of a scenario: a file, a link, or - for standard input.
        after_cycles: Let the load balancer run the cycles of the scenario first, and plan for what they leave.
        survive_loss: Move as little as possible so that the loss of any one broker overloads no other.
        seed: Seed of the search.
        wave_clients: Most clients that a wave disconnects.
        pause: Seconds between two waves.
        as_json: Print everything as JSON.
        commands: Print the plan as a script of pulsar-admin commands.
        back: Print a script that undoes the plan.
        csv: Write a CSV with one row for each move.
        save: Write the plan, wave by wave, as a scenario for `plan`, What-if and Compare.
    """
    from planner.explain.doubt import doubt_about
    from planner.optimize.absorb import surviving
    from planner.optimize.answer import best_plan
    from planner.optimize.offer import offer_of, with_alternative
    from planner.optimize.question import Question
    from planner.share.commands import CommandOptions

    _check(wave_clients, scenario, saves=save is not None, after_cycles=after_cycles)
    question = Question(
        moves=moves,
        topics=topics,
        clients=clients,
        bytes_per_s=None if megabytes is None else megabytes * 1e6,
        under_percent=under,
        cost=least,
        drain=drain,
        exclude=exclude,
        keep_namespaces=keep,
        pins=_pins(pin),
        even=even,
        splits=splits,
        seed=seed,
    )
    name, captured = opened(snapshot)
    cluster, basis = _start(captured, scenario, traffic, after_cycles=after_cycles)
    plan = surviving(cluster, question) if survive_loss else best_plan(cluster, question)
    doubt = doubt_about(captured, None if basis is None else basis.scenario)
    offer, options = offer_of(plan, asked=survive_loss, untrue=doubt.everywhere), CommandOptions(pause_s=pause)
    offer = offer if commands or back else with_alternative(offer)
    answer = _Answer(name, captured, offer, wave_clients, options, basis, doubt.sentence)
    answer.write(csv, save)
    answer.print(as_json=as_json, commands=commands, back=back)


def _pins(pin: "Sequence[str]") -> dict[str, str]:
    """Return the broker of each pinned bundle.

    Raises:
        ScenarioError: A pin lacks its bundle or its broker.
    """
    from planner.cluster.errors import ScenarioError

    pairs = [one.rpartition("=") for one in pin]
    if any(not bundle or not broker for bundle, _, broker in pairs):
        raise ScenarioError("A pin is a bundle and a broker.", where="--pin", remedy="Use --pin BUNDLE=BROKER.")
    return {bundle: broker for bundle, _, broker in pairs}


def _check(wave_clients: int, scenario: str | None, *, saves: bool, after_cycles: bool) -> None:
    """Reject options that do not go together, before anything is opened.

    Raises:
        ScenarioError: They do not.
    """
    from planner.cluster.errors import ScenarioError

    if saves and scenario is not None:
        raise ScenarioError(
            "A plan made with --scenario cannot be saved as a plan for the snapshot.",
            where="--save",
            remedy="Leave out --save or --scenario.",
        )
    if after_cycles and scenario is None:
        raise ScenarioError(
            "Only a scenario has cycles.", where="--after-cycles", remedy="Add --scenario, or leave out --after-cycles."
        )
    if wave_clients < 1:
        raise ScenarioError(
            f"A wave of {wave_clients} clients cannot contain a move.", where="--wave-clients", remedy="Use at least 1."
        )


def _start(
    captured: "Snapshot", scenario: str | None, traffic: float, *, after_cycles: bool
) -> "tuple[Snapshot, Basis | None]":
    """Return the cluster that a plan starts from, and what the plan stands on."""
    from planner.optimize.absorb import left_by, with_traffic
    from planner.share.carry_out import Basis
    from planner.simulate.run import simulate
    from planner.simulate.usage_model import settled
    from planner.workspace.opening import content_of, open_scenario

    if scenario is None:
        return with_traffic(captured, traffic), None
    show_price(captured, asked := content_of(open_scenario(scenario), captured))
    for measured in asked.measured_by_plans(captured):
        warn(measured)
    start = settled(simulate(captured, asked)) if after_cycles else left_by(captured, asked)
    return with_traffic(start, traffic), Basis(captured, asked)


class _Answer:
    """A plan with its waves, in each form in which the command gives it.

    Args:
        name: Name of the snapshot.
        captured: The snapshot.
        offer: What is offered of the plan.
        wave_clients: Most clients that a wave disconnects.
        options: How commands are written.
        basis: The scenario that the plan is for, if there is one.
        doubt: What cannot be right about the measurements, as a sentence; empty for nothing.
    """

    def __init__(
        self,
        name: str,
        captured: "Snapshot",
        offer: "Offer",
        wave_clients: int,
        options: "CommandOptions",
        basis: "Basis | None",
        doubt: str,
    ) -> None:
        from planner.optimize.waves import waves_of

        self.name, self.captured, self.offer, self.options, self.basis = name, captured, offer, options, basis
        self.plan, self.stability, self.doubt = offer.plan, offer.stability, doubt
        self.waves = waves_of(offer.plan, wave_clients)

    def write(self, csv: Path | None, save: Path | None) -> None:
        """Write the files that were asked for."""
        from planner.cluster.digest import snapshot_digest
        from planner.optimize.waves import scenario_of
        from planner.share.carry_out import moves_csv
        from planner.share.scenario_file import scenario_file

        if csv is not None:
            write_file(csv, moves_csv(self.waves))
        if save is not None:
            carried_out = scenario_of(self.plan, self.waves, pause_min=self.options.pause_s / 60, held=False)
            write_file(save, scenario_file(carried_out, snapshot_digest(self.captured), self.name))

    def print(self, *, as_json: bool, commands: bool, back: bool) -> None:
        """Print what was asked for."""
        if as_json:
            self.print_json()
        elif back or commands:
            self.print_script(back=back)
        else:
            self.print_text()

    def print_json(self) -> None:
        """Print everything as JSON."""
        from planner.optimize.answer import peak_without_groups
        from planner.share.carry_out import document
        from planner.share.export import json_text

        stability = self.stability
        warn_switched_off(self.captured)
        found = document(
            self.plan,
            self.waves,
            stability,
            name=self.name,
            options=self.options,
            ungrouped=peak_without_groups(self.plan),
            basis=self.basis,
            offer=self.offer,
        )
        sys.stdout.write(json_text({**found, "doubt": self.doubt}))

    def print_script(self, *, back: bool) -> None:
        """Print a script that carries the plan out, or undoes it."""
        from planner.cluster.units import NS_PER_MS
        from planner.share.carry_out import best_plan_script

        stability = self.stability
        warn_switched_off(self.captured)
        made_at_ms = time.time_ns() // NS_PER_MS
        args = self.plan, self.waves, stability, self.options, self.basis
        sys.stdout.write(best_plan_script(*args, made_at_ms=made_at_ms, back=back))

    def print_text(self) -> None:
        """Print the plan for people to read."""
        sys.stdout.write(_text(self.name, self.offer, self.waves, self.doubt))


def _text(name: str, offer: "Offer", waves: "Sequence[Wave]", doubt: str) -> str:
    """Return a plan for people to read."""
    from planner.cluster.text import count
    from planner.explain.switched_off import switched_off
    from planner.optimize.answer import peak_without_groups
    from planner.optimize.offer import nearly_as_low
    from planner.share.carry_out import headline, of_groups
    from planner.share.plan_text import first_moves, printed

    plan = offer.plan
    off = [one.text for one in switched_off(plan.snapshot)]
    lines = [f"Snapshot   {name}", f"Plan       {plan.digest()[:_SHORT]}", "", *off, headline(offer)]
    lines += [doubt] if doubt else []
    lines += [found] if (found := nearly_as_low(plan)) else []
    lines += [plan.limit] if plan.question.under_percent is None else []
    lines += [offer.constraint.sentence] if offer.constraint else []
    groups = of_groups(plan, peak_without_groups(plan)) if plan.moves and not offer.tried else ""
    lines += [groups] if groups else []
    lines += [f"Within 30 cycles: {offer.verdict.text}"] if offer.verdict and plan.moves else []
    lines += [offer.stability.sentence] if plan.moves else []
    lines += [offer.alternative.sentence] if offer.alternative else []
    lines += [*plan.notes]
    most = max((wave.clients for wave in waves), default=0)
    lines += [f"Waves: {len(waves):,}, at most {count(most, 'client')} at once", ""]
    lines += [f"Split: {one.bundle} at 0x{one.boundary:08x}; {one.why}" for one in plan.splits]
    moved = [f"{move.bundle}: {move.source} -> {move.destination} ({move.why})" for move in plan.moves]
    return printed(lines + first_moves(moved))
