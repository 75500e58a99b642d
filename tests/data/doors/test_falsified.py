"""Nothing is silently wrong: each field that is dropped or falsified gives a note, a refusal, or has no effect.

One test over all kinds: it walks every field of an input, whatever the field is called, and compares the reading with
that of the input as it was.
"""

import io
import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import PlannerError
from planner.doors.read import Given, read_given
from planner.doors.reading import Reading

INPUTS = Path(__file__).parent / "inputs"
AROUND = ("load_report/one_line_4_2.jsonl", "brokers/lines_4_2.txt")
ALONE: tuple[str, ...] = ()
OLD = ("load_report/two_in_a_row_3_3.txt", "brokers/rest.json")

CASES: dict[str, tuple[str, ...]] = {
    "load_report/pretty_4_0.json": ("brokers/lines_4_2.txt",),
    "load_report/simple_2_5.json": ALONE,
    "broker_topics/one_line_4_0.broker-0.json": AROUND,
    "broker_topics/pretty_2_10.10.2.0.11_8080.json": OLD,
    "averages/terminal_4_0.txt": AROUND,
    "metrics/scrape_4_2.prom": ALONE,
    "metrics/federate.txt": ALONE,
    "metrics_in_json/one_line_4_2.json": ALONE,
    "prometheus/instant.json": ALONE,
    "prometheus/counters.json": ALONE,
    "victoria_metrics/export.jsonl": ALONE,
    "promtool/range_2_42.txt": ALONE,
    "grafana/query_11.json": ALONE,
    "grafana/panel_data_9.json": ALONE,
    "series_csv/grafana_table_10.csv": ALONE,
    "terraform/state.json": AROUND,
    "load_balancer_topic/recorded.jsonl": ("owned/terminal_2_10.txt",),
    "monitor_brokers/modular_4_0.txt": ("owned/lines_4_2.txt",),
    "topic_stats/terminal_4_2.txt": AROUND,
    "bundles_of_namespace/by_name.json": AROUND,
    "policies_of_namespace/by_name_4_2.json": AROUND,
    "owned/lines_4_2.txt": ("bundles_of_namespace/by_name.json", "brokers/lines_4_2.txt"),
    "isolation/rest.json": AROUND,
    "dispatch_limit/namespace_4_2.txt": AROUND,
    "domains/java_4_2.txt": AROUND,
    "settings_of_broker/runtime_4_2.txt": AROUND,
    "settings_of_broker/dynamic_3_0.txt": AROUND,
    "commands_that_change/all_brokers.txt": AROUND,
    "settings_file/broker_4_0.conf": AROUND,
    "settings_in_yaml/streamnative_values.yaml": AROUND,
}
"""An input of each kind that carries numbers, and the outputs beside it."""

NO_TIMES = ("load_report/two_in_a_row_3_3.txt",)
BY_WORD: dict[str, tuple[str, ...]] = {
    "settings_as_json/runtime.json": AROUND,
    "settings_as_java/runtime.txt": AROUND,
    "settings_as_java/dynamic.txt": AROUND,
    "options_of_commands/docker_run.txt": AROUND,
    "options_of_commands/helm_set.txt": AROUND,
    "options_of_commands/docker_inspect_format.txt": AROUND,
    "shell_variables/fish.txt": AROUND,
    "shell_variables/Dockerfile_2_8": AROUND,
    "differences/plain.txt": AROUND,
    "differences/helm_diff.txt": AROUND,
    "terraform_plan/config_map_4_2.txt": AROUND,
    "terraform_plan/values_4_0.txt": AROUND,
    "log_of_broker/commons_2_3.txt": AROUND,
    "log_of_broker/lombok_3_0.txt": AROUND,
    "anti_affinity/terminal_4_0.txt": AROUND,
    "brokers/lines_4_2.txt": ("load_report/one_line_4_2.jsonl",),
    "brokers/zookeeper_ls.txt": NO_TIMES,
    "topic_names/list_4_0.txt": AROUND,
    "topic_names/rest.json": AROUND,
    "namespaces/list_4_0.txt": AROUND,
    "leader/pretty_4_2.json": AROUND,
    "leader/java_4_0.txt": AROUND,
    "version/line_4_0.txt": AROUND,
    "version/quoted_3_0.txt": AROUND,
    "lookups/rest_4_0.json": AROUND,
    "lookups/one_4_0.txt": AROUND,
    "brokers_of_policies/rest_3_0.json": AROUND,
    "resource_quotas/of_a_bundle_2_8.txt": AROUND,
    "nothing/no_policies_4_0.txt": AROUND,
    "errors/http_403.txt": AROUND,
    "errors/rest_401.json": AROUND,
    "other_tools/kubectl_top.txt": AROUND,
    "allocator_stats/default.json": AROUND,
}
"""Names and settings in free forms, and what is not used: each word is dropped, and replaced by others."""
CASES |= BY_WORD

WRONG: tuple[Any, ...] = (None, -1, "x", 1e300, [], {})


def read(around: tuple[str, ...], name: str, text: str) -> Reading | str:
    files = [Given(Path(one).name, io.BytesIO((INPUTS / one).read_bytes())) for one in around]
    files.append(Given(Path(name).name, io.BytesIO(text.encode())))
    try:
        return read_given(files, now_ms=1795225800000)
    except PlannerError as error:
        return str(error)


def said(reading: Reading) -> set[str]:
    warnings = reading.snapshot.info.warnings if reading.snapshot is not None else ()
    texts = (*reading.contradictions, *reading.assumed, *reading.not_used, *(one.note for one in reading.missing))
    return {*texts, *warnings, reading.not_enough}


def effect(reading: Reading) -> object:
    snapshot = reading.snapshot
    return None if snapshot is None else (snapshot_digest(snapshot), snapshot.policies, snapshot.info.captured_at_ms)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of the fields of a JSON value, its objects as well."""
    items: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(value, dict):
        items = iter(value.items())
    elif isinstance(value, list):
        items = iter(enumerate(value[:1]))
    for key, item in items:
        yield (*path, key)
        yield from leaves(item, (*path, key))


def changed(document: Any, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    made = deepcopy(document)
    at = made
    for key in path[:-1]:
        at = at[key]
    change(at, path[-1])
    return made


def drop(at: Any, key: Any) -> None:
    del at[key]


def put(wrong: Any, at: Any, key: Any) -> None:
    at[key] = wrong


def kind_of_path(path: tuple[Any, ...]) -> str:
    """Name a field by its words alone, so that each field of a hundred bundles is tried once."""
    return "/".join("*" if isinstance(part, int) or re.search(r"[/:0-9]", part) else part for part in path)


def documents(text: str) -> tuple[list[Any], str]:
    """Return the JSON documents of a text, and what stands before them."""
    start = next((at for at, sign in enumerate(text) if sign in "[{"), len(text))
    decoder, found, at = json.JSONDecoder(), [], start
    while at < len(text.rstrip()):
        value, at = decoder.raw_decode(text, at)
        found.append(value)
        while at < len(text) and text[at].isspace():
            at += 1
    return found, text[:start]


def fields_of(name: str) -> set[str]:
    """Return what the fields of an input are called; nothing for one that is not JSON alone."""
    text = (INPUTS / name).read_text(encoding="utf-8-sig")
    try:
        found, _ = documents(text)
    except json.JSONDecodeError:
        return set()
    return {kind_of_path(path).rpartition("/")[2] for document in found for path in leaves(document)}


def others() -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the other inputs of each kind with the fields that none of its cases, nor of these, has."""
    for folder in sorted(INPUTS.iterdir()):
        names = sorted(f"{folder.name}/{path.name}" for path in folder.iterdir())
        seen = {field for name in names if name in CASES for field in fields_of(name)}
        for name in names:
            if name not in CASES and (new := fields_of(name) - seen):
                seen |= new
                yield name, frozenset(new)


def of_json(text: str, fields: frozenset[str] | None = None) -> Iterator[tuple[str, str]]:
    """Yield a text with a field dropped or falsified: all of them, or those that are called so."""
    found, head = documents(text)
    seen: set[str] = set()
    for number, document in enumerate(found):
        for path in leaves(document):
            name = kind_of_path(path)
            if name in seen or (fields is not None and name.rpartition("/")[2] not in fields):
                continue
            seen.add(name)
            changes: list[tuple[str, Callable[[Any, Any], None]]] = [("dropped", drop)]
            changes += [(f"= {wrong!r}", partial(put, wrong)) for wrong in WRONG]
            for what, change in changes:
                others = [*found[:number], changed(document, path, change), *found[number + 1 :]]
                yield f"{name} {what}", head + "\n".join(map(json.dumps, others)) + "\n"


NUMBER = re.compile(r"(?<=[\s=|:])-?[0-9]+(?:\.[0-9]+)?(?:E[0-9]+)?(?=[\s|]|$)")


def of_lines(text: str) -> Iterator[tuple[str, str]]:
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if not line.strip() or line.startswith("#"):
            continue
        yield f"line {at + 1} dropped: {line}", "\n".join([*lines[:at], *lines[at + 1 :]]) + "\n"
        for found in NUMBER.finditer(line):
            for wrong in ("x", "-1", "NaN", "1e300"):
                made = line[: found.start()] + wrong + line[found.end() :]
                yield f"line {at + 1}: {made}", "\n".join([*lines[:at], made, *lines[at + 1 :]]) + "\n"


WORD = re.compile(r"[^\s\"',:=\[\]{}()]+")
OTHER_WORDS = ("x", "-1", "NaN", "1e300", "mq-9:8080", "x/y")


def of_words(text: str) -> Iterator[tuple[str, str]]:
    for found in WORD.finditer(text):
        for wrong in ("", *OTHER_WORDS):
            made = text[: found.start()] + wrong + text[found.end() :]
            yield f"{found[0]} {f'= {wrong!r}' if wrong else 'dropped'}", made


def falsified(name: str, fields: frozenset[str] | None = None) -> Iterator[tuple[str, str]]:
    text = (INPUTS / name).read_text(encoding="utf-8-sig")
    if name in BY_WORD:
        yield from of_words(text)
        return
    is_json = name.endswith((".json", ".jsonl")) or (text.lstrip("$")[:1] != "{" and "\n{\n" in text)
    yield from of_json(text, fields) if is_json and "monitor" not in name else of_lines(text)


ALLOWED = {
    "load_report": r"(?:startTimestamp|(?:nonP|p)ersistentTopicsEnabled) "  # facts that no decision reads
    r"|loadManagerClassName (?:dropped|= None)",  # older releases do not report it
    "topic_stats": r"(?:publishers|consumers) = \[\]|subscriptions = \{\}|/(?:\*|s) dropped",  # no clients
    # other expressions
    "isolation": r"^policy-a dropped|namespaces/\* = 'x'|primary/\* = 'x'|primary = \[\]|\* dropped",
    "dispatch_limit": r"(?i)dispatchThrottlingRateInMsg = -1",  # no limit
    "domains": r"dropped|brokers = \[\]|brokers/\* = 'x'",  # another domain, or none; a finding names unknown brokers
    # no limit, in either spelling
    "policies_of_namespace": r"DispatchRate(?:/\w+)? (?:dropped|= None|= \{\})|Rate/\w+/\w+ dropped|In\w{3,4} = -1",
    "settings_of_broker/dynamic": r"dropped",  # what is not overridden
    "settings_file": r"dropped",  # what a file leaves out has its default
    "settings_in_yaml": r"dropped",
    "promtool": r"dropped: [0-9.]+ @",  # the sample before it counts, as in Prometheus
    "settings_as_java/dynamic": r"^[a-z]\w* = |= '-1'",  # what the planner does not use, and no limit
    "options_of_commands": r"^(?:-e|--set|PULSAR_PREFIX_\w+|broker\.configData\.\w+) |^5 dropped",  # of another program
    "log_of_broker/lombok": r"^(?:10\.0|(?:range|topic_count)_equally_divide) ",  # not set; lint looks at algorithms
    "anti_affinity": r"^red ",  # another group, or none
    "nothing": r"^east ",  # another cluster
    "topic_names": r"= 'x/y'",  # a namespace
    "victoria_metrics": r"partition dropped",  # another topic
    "terraform/": r"dropped|= None|= \[\]|= \{\}|set/\*/name = 'x'",  # another value of the chart, or none
}
"""Changes after which an input is as good as before, by the beginning of its name."""


def test_every_kind_is_tried() -> None:
    assert {path.name for path in INPUTS.iterdir()} == {name.partition("/")[0] for name in CASES}


def silent_changes(name: str, around: tuple[str, ...], fields: frozenset[str] | None = None) -> list[str] | None:
    """Return the changes after which the cluster is another one in silence; None where the outputs make no cluster."""
    before = read(around, name, (INPUTS / name).read_text(encoding="utf-8-sig"))
    if isinstance(before, str) or before.snapshot is None:
        return None
    silent, tried = [], 0
    for what, text in falsified(name, fields):
        tried += 1
        after = read(around, name, text)
        if isinstance(after, str) or effect(after) == effect(before) or said(after) != said(before):
            continue
        if not any(name.startswith(start) and re.search(allowed, what) for start, allowed in ALLOWED.items()):
            silent.append(what)
    assert tried
    return silent


@pytest.mark.parametrize("name", CASES)
def test_what_is_dropped_or_falsified_is_noted_refused_or_has_no_effect(name: str) -> None:
    assert silent_changes(name, CASES[name]) == []


@pytest.mark.parametrize(("name", "fields"), tuple(others()), ids=lambda of: of if isinstance(of, str) else "")
def test_fields_that_other_inputs_have_are_tried_as_well(name: str, fields: frozenset[str]) -> None:
    """So every field of every input is tried, none chosen by hand. Limits and domains were left out in silence."""
    found = [silent for around in (ALONE, AROUND, OLD) if (silent := silent_changes(name, around, fields)) is not None]
    assert found[:1] == [[]]
