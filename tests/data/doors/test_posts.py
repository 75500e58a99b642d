"""Outputs as people post them in issues, mails and chats are read, or it is said what is wrong with them."""

import html
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.cluster.digest import snapshot_digest
from planner.doors.read import Given, read_given, read_outputs
from planner.doors.reading import Reading

INPUTS = Path(__file__).parent / "inputs"
REPORT = (INPUTS / "load_report" / "pretty_4_0.json").read_text().strip()


def read(text: str) -> Reading:
    return read_given([Given("pasted text", io.BytesIO(text.encode()))], now_ms=1795225795494)


def each_line(prefix: Callable[[int], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(prefix(number) + line for number, line in enumerate(text.split("\n"), 1))


POSTED: dict[str, Callable[[str], str]] = {
    "a fence": lambda text: f"the report:\n\n```json\n{text}\n```\n\nThanks!",
    "a fence in a line": lambda text: f"hi all, my report ```{text}``` any idea?",
    "code in a line": lambda text: f"broker A: `{json.dumps(json.loads(text))}`\nB is idle",
    "a list": lambda text: "- broker 1:\n\n  ```\n" + each_line(lambda _: "  ")(text) + "\n  ```\n",
    "details": lambda text: f"<details>\n<summary>report</summary>\n\n```\n{text}\n```\n\n</details>\n",
    "a page": lambda text: f"<pre><code>{html.escape(text)}</code></pre>",
    "a page with attributes": lambda text: f'<p class="x">\n<pre>{html.escape(text)}</pre></p>',
    "a quotation": each_line(lambda _: "> "),
    "a quotation without blanks": each_line(lambda _: ">"),
    "a quotation in a quotation": each_line(lambda _: "> > "),
    "an indented quotation": each_line(lambda _: "  > "),
    "numbered lines": each_line(lambda number: f"{number:4}| "),
    "numbered lines of an editor": each_line(lambda number: f"{number:3} "),
    "a numbered list": each_line(lambda number: f"{number}. "),
    "numbered lines of bat": each_line(lambda number: f"{number:4} │ "),
}


@pytest.mark.parametrize("post", POSTED.values(), ids=POSTED.keys())
def test_a_report_in_a_post_is_read(post: Callable[[str], str]) -> None:
    found, bare = read(post(REPORT)), read(REPORT)
    assert found.snapshot is not None
    assert bare.snapshot is not None
    assert snapshot_digest(found.snapshot) == snapshot_digest(bare.snapshot)
    assert not any("columns" in one for one in found.assumed)


@pytest.mark.parametrize("dots", ["...", "…", "... 20 more\n"])
def test_shortened_json_is_named_as_such(dots: str) -> None:
    (why,) = read(REPORT.replace('"numTopics"', f'{dots}\n  "numTopics"')).not_used
    assert "The text was shortened" in why
    assert "Use the whole output" in why


def test_bundles_of_a_damaged_report_are_no_namespaces() -> None:
    reading = read('"shop/orders/0x00000000_0x40000000"\n"shop/orders/0x40000000_0x80000000"\n')
    assert reading.found == ()
    assert "unknown kind" in " ".join(reading.not_used)


def test_sentences_between_answers_are_not_joined() -> None:
    text = "1. Start 3 brokers\n2. Start producing and consuming for all of these topics, as many as there are\n"
    text += "loadBalancerMsgRateDifferenceShedderThreshold=0, means disable msgRate based shedding\n"
    reading = read(text + "loadBalancerEnabled=true\n6. Restart brokers several times\n")
    assert reading.configurations[0].values == {"loadBalancerEnabled": "true"}
    assert "loadBalancerMsgRateDifferenceShedderThreshold cannot have the value" in " ".join(reading.not_used)
    assert not any("columns" in one for one in reading.assumed)


def test_a_posted_difference_without_its_marks() -> None:
    found = read("-loadBalancerSheddingEnabled=false\n+loadBalancerSheddingEnabled=true\n loadBalancerEnabled=true\n")
    name = "loadBalancerSheddingEnabled"
    assert [one.values[name] for one in found.configurations] == ["false", "true"]
    as_list = read(f"- {name}=false\n- loadBalancerEnabled=true\n")
    assert len(as_list.configurations) == 1


@pytest.mark.parametrize("address", ["http://mq-1.svc:8080", "mq-1.svc:8080"])
def test_the_leader_of_older_documentation(address: str) -> None:
    found = read(f"$ pulsar-admin brokers leader-broker\nBrokerInfo(serviceUrl={address})\n")
    assert found.found == ("the leader",)


def test_a_leader_without_an_address_is_named() -> None:
    (why,) = read("$ pulsar-admin brokers leader-broker\nBrokerInfo(serviceUrl=nowhere)\n").not_used
    assert "leader without a valid address" in why


def test_commands_without_answers_are_named_as_such() -> None:
    text = "bin/pulsar-admin namespaces unload shop/orders\n"
    assert read(text).not_used == ("pasted text: it holds commands without their answers.",)


def test_brokers_of_isolation_policies_are_recognised() -> None:
    text = '{"brokerName":"b:1","isPrimary":false}\n{"brokerName":"c:1","isPrimary":true,"namespaceRegex":["a/b"]}\n'
    (why,) = read(text).not_used
    assert "use ns-isolation-policy list for the policies" in why


def test_averages_of_brokers_are_called_so() -> None:
    averages = {f"{term}TermMsg{what}": 1.0 for term in ("short", "long") for what in _RATES}
    text = f"get /loadbalance/broker-time-average/b-1.example:8080\n{json.dumps(averages)}\n"
    assert read(text).found == ("averages of 1 broker",)


_RATES = ("ThroughputIn", "ThroughputOut", "RateIn", "RateOut")


def test_the_titles_of_a_table_are_no_answer() -> None:
    rule = "+----------------+\n"
    table = f"{rule}| BROKER ADDRESS |\n{rule}| 127.0.0.1:8080 |\n{rule}"
    reading = read(f"$ pulsarctl brokers list standalone\n{table}")
    assert reading.found == ("a list of 1 broker",)
    assert not reading.not_used


def test_lookups_of_one_length_are_not_joined() -> None:
    lines = [f'"persistent://shop/orders/o-partition-{at}    pulsar://10.0.0.{at}:6650"' for at in range(2)]
    reading = read("$ pulsar-admin topics partitioned-lookup persistent://shop/orders/o\n" + "\n".join([*lines, "So?"]))
    assert not any("columns" in one for one in reading.assumed)
    assert "lookups of topics" in " ".join(reading.not_used)


def test_nodes_of_a_store_are_named_by_the_line_above_them() -> None:
    """The command names the folder; what `etcdctl` prints before each value names the node."""
    path = Path(__file__).parent / "inputs" / "averages" / "etcdctl_4_0.txt"
    reading = read(path.read_text())
    assert reading.found == ("averages of 2 bundles",)
    assert not reading.not_used


def test_the_owner_of_a_single_bundle_is_called_so() -> None:
    path = Path(__file__).parent / "inputs" / "lookups" / "node_2_7.txt"
    assert "the owner of a single bundle; use brokers namespaces" in " ".join(read(path.read_text()).not_used)


@pytest.mark.parametrize("above", ["[zk: zk-0:2181(CONNECTED) 3] get {}", "$ etcdctl get --prefix /admin\n{}"])
def test_the_path_of_a_node_names_its_namespace(above: str) -> None:
    edges = '"0x00000000","0x80000000","0xffffffff"'
    value = f'{{"bundles":{{"boundaries":[{edges}],"numBundles":2}}}}'
    reading = read(f"{above.format('/admin/local-policies/shop/orders')}\n{value}\n")
    assert reading.found == ("bundles of 1 namespace",)
    assert not reading.assumed
    assert not reading.not_used


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cloud_watch.json", "an answer of CloudWatch; use what brokers print at /metrics"),
        ("pulsar_manager.json", "a table of Pulsar Manager, which has no bundles; use brokers list"),
        ("kubectl_top.txt", "usage of pods as Kubernetes measures it; use the load report of each broker"),
        ("influx.txt", "lines of InfluxDB; use what brokers print at /metrics"),
        ("clusters_and_tenants.txt", "the rights of a tenant, which no decision reads"),
    ],
)
def test_answers_of_other_tools_are_refused_with_what_to_use(name: str, said: str) -> None:
    reading = read((INPUTS / "other_tools" / name).read_text())
    assert reading.found == ()
    assert said in " ".join(reading.not_used)


def test_settings_below_an_answer_of_another_tool_are_read() -> None:
    text = (INPUTS / "other_tools" / "kubectl_top.txt").read_text()
    [found] = read(f"{text}\nloadBalancerEnabled=true\n").configurations
    assert found.values == {"loadBalancerEnabled": "true"}


@pytest.mark.parametrize("text", ['["public", "pulsar", "shop"]', "$ pulsar-admin tenants list\n[]", ""])
def test_names_of_tenants_are_called_names(text: str) -> None:
    said = " ".join(read(text or "$ pulsar-admin clusters list\neast\nwest\n").not_used)
    assert "a list of 3 names alone" in said or "the answer to " in said
    assert "JSON of an unknown kind" not in said


def test_bundles_cut_out_of_a_report_keep_their_rates() -> None:
    """They were taken for a list of bundles, all without traffic."""
    stats = json.dumps(json.loads(REPORT)["lastStats"], indent=2)
    command = "curl -s http://mq-0.mq.east.svc:8080/admin/v2/broker-stats/load-report | jq .lastStats"
    reading = read(f"$ {command}\n{stats}\n")
    assert reading.snapshot is not None
    assert reading.snapshot.bundles.msg_rate_in_per_s.sum() == pytest.approx(1_140.75)
    assert "the load of mq-0.mq.east.svc:8080" in [one.what for one in reading.missing]


def test_a_cluster_that_never_had_isolation_policies_has_none() -> None:
    text = "null\n\nReason: NamespaceIsolationPolicies for cluster east does not exist\n"
    reading = read(f"$ pulsar-admin ns-isolation-policy list east\n{text}")
    assert reading.found == ("isolation policies (0)",)
    assert not reading.not_used


@pytest.mark.parametrize("title", ["Error 401 Authentication required", "307 Temporary Redirect", "403 Forbidden"])
def test_a_page_of_a_server_is_an_error(title: str) -> None:
    page = f"<html>\n<head>\n<title>{title}</title>\n</head>\n<body><h2>HTTP ERROR</h2>\n</body>\n</html>\n"
    [why] = read(f"$ curl http://mq-0:8080/admin/v2/brokers/east\n{page}").not_used
    assert f"an error: {title}" in why


def test_a_name_between_lines_is_a_heading() -> None:
    other = REPORT.replace("mq-0", "mq-1").replace("shop/", "pay/")
    reading = read(f"--- mq-0 ---\n{REPORT}\n--- mq-1 ---\n{other}\n")
    assert reading.found == ("load reports of 2 brokers",)
    assert not reading.not_used


OWNED = """acme/app/0x00000000_0x80000000    [broker_assignment=shared is_controlled=false is_active=true]
acme/app/0x80000000_0xffffffff    [broker_assignment=shared is_controlled=false is_active=true]"""
ASKED = "pulsar-admin brokers namespaces east --url 10.2.0.7:8080"


@pytest.mark.parametrize(
    "text",
    [
        f"`{ASKED}`\n```{OWNED}```\n",
        f"```\n$ {ASKED}\n{OWNED}```\n",
        f"1. `{ASKED}`:\n```shell\n{OWNED}\n```\n",
        f"- `{ASKED}`\n~~~{OWNED}\n~~~\n",
    ],
)
def test_code_on_the_line_of_its_marks_is_read(text: str) -> None:
    """The first or last bundle was lost, and the broker that was asked."""
    reading = read(text)
    assert reading.snapshot is not None
    assert reading.snapshot.brokers.name == ("10.2.0.7:8080",)
    assert reading.snapshot.bundles.owner.tolist() == [0, 0]
    assert not reading.not_used


@pytest.mark.parametrize("mark", ["* `{}`", "- `{}`", "• `{}`", "`{}`,"])
def test_names_in_a_list_of_a_post_are_read(mark: str) -> None:
    reading = read("\n".join(mark.format(name) for name in ("10.2.0.7:8080", "10.2.0.8:8080")))
    assert reading.found == ("a list of 2 brokers",)


def test_a_summary_of_monitor_brokers_is_called_so() -> None:
    """It was called log lines."""
    head = "||BROKER          |BUNDLE  |MSG/S     |LONG/S    |KB/S     |MAX %   ||"
    text = f"{head}\n||mq-0:8080       |47      |1215.47   |255.65    |195.65   |0.39    ||\n"
    [why] = read(f"Broker Data for 1 broker\n{text}").not_used
    assert "a summary of brokers without the usage of each resource" in why
    assert read(text).not_used == (why,)


@pytest.mark.parametrize(
    ("text", "rate"), [("1,300.50", 1_300.5), ("1.300,50", 1_300.5), ("1300,50", 1_300.5), ("1,234,567", None)]
)
def test_numbers_of_monitor_brokers_with_parted_thousands(text: str, rate: float | None) -> None:
    table = (INPUTS / "monitor_brokers/modular_4_0.txt").read_text()
    head, old = table, table.partition("MSG/S IN")[2].partition("\n")[2].split("|")[3].strip()
    changed = head.replace(f"{old:<10}"[: len(old)], text, 1)
    reading = read(f"{changed}\n$ pulsar-admin brokers namespaces c --url mq-0.mq.east.svc:8080\n{OWNED}\n")
    assert reading.snapshot is not None
    found = reading.snapshot.brokers.msg_rate_in_per_s.tolist()
    assert (rate in found) is (rate is not None)
    assert rate is not None or any("lacks msgRateIn" in one for one in reading.contradictions)


def test_usage_of_a_simple_report_is_that_of_its_system() -> None:
    """A plain number of the same name took its place, and the broker had no load and no traffic."""
    report = json.loads((INPUTS / "load_report/simple_2_5.json").read_text())
    before = read(json.dumps(report)).snapshot
    after = read(json.dumps(report | {"cpu": 220.0, "memory": 812.5})).snapshot
    assert before is not None
    assert after is not None
    assert after.brokers.cpu_usage_percent.tolist() == before.brokers.cpu_usage_percent.tolist() == [220.0]
    assert after.bundles.msg_rate_in_per_s.tolist() == before.bundles.msg_rate_in_per_s.tolist()


@pytest.mark.parametrize("newer", [None, {}, {"west": {"dispatchThrottlingRateInMsg": 7}}])
def test_the_dispatch_limit_of_older_releases_counts(newer: dict[str, object] | None) -> None:
    """Brokers still read it where the newer field says nothing of their cluster; it was left out in silence."""
    limit = {"dispatchThrottlingRateInMsg": 1_000, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": 1}
    policies = {"replication_clusters": ["east"], "backlog_quota_map": {}, "clusterDispatchRate": {"east": limit}}
    policies |= {} if newer is None else {"topicDispatchRate": newer}
    text = f"$ {ASKED}\n{OWNED}\n$ pulsar-admin namespaces policies acme/app\n{json.dumps(policies, indent=2)}\n"
    snapshot = read(text).snapshot
    assert snapshot is not None
    assert [(one.target, one.rate.msg_per_period) for one in snapshot.policies.dispatch_rates] == [("acme/app", 1_000)]


def test_the_newer_dispatch_limit_counts_before_the_older_one() -> None:
    fields = ("topicDispatchRate", "clusterDispatchRate")
    rates = {name: {"east": {"dispatchThrottlingRateInMsg": n}} for n, name in enumerate(fields, 1)}
    policies = {"replication_clusters": ["east"], "backlog_quota_map": {}, **rates}
    text = f"$ {ASKED}\n{OWNED}\n$ pulsar-admin namespaces policies acme/app\n{json.dumps(policies, indent=2)}\n"
    snapshot = read(text).snapshot
    assert snapshot is not None
    assert [one.rate.msg_per_period for one in snapshot.policies.dispatch_rates] == [1]


def test_an_answer_on_the_line_of_its_command_is_read() -> None:
    """Pages lose the ends of lines in code; it was called a command without its answer."""
    edges = '"boundaries": [ "0x00000000", "0x80000000", "0xffffffff" ], "numBundles": 2'
    policies = f'{{ "auth_policies": {{ }}, "replication_clusters": [], "bundles": {{ {edges} }} }}'
    reading = read(f"$ pulsar-admin namespaces policies acme/app {policies}\n$ {ASKED}\n{OWNED}\n")
    assert reading.found == ("bundles of 1 broker", "policies of 1 namespace")
    assert not reading.not_used
    bundles = read(f"pulsar-admin namespaces bundles acme/app {{ {edges} }}")
    assert bundles.found == ("bundles of 1 namespace",)


@pytest.mark.parametrize("field", ["topicDispatchRate", "subscriptionDispatchRate", "replicatorDispatchRate"])
def test_limits_of_policies_that_are_none_are_named(field: str) -> None:
    given: tuple[object, ...] = ([], "x", {"east": 7}, {"east": {"dispatchThrottlingRateInMsg": "many"}})
    for wrong in given:
        policies = {"replication_clusters": ["east"], "backlog_quota_map": {}, field: wrong}
        text = f"$ {ASKED}\n{OWNED}\n$ pulsar-admin namespaces policies acme/app\n{json.dumps(policies)}\n"
        assert any(f"{field} of a namespace left out" in one for one in read(text).not_used)


def test_groups_of_metrics_without_a_list_are_the_same_metrics() -> None:
    """The tool of 3.3.5 prints them one behind the other; they were JSON of an unknown kind."""
    one, other = (read_outputs(INPUTS / "metrics_in_json" / name) for name in ("groups_3_3.txt", "one_line_4_2.json"))
    assert one.found == other.found == ("metrics of 1 broker",)
    assert one.snapshot is not None
    assert other.snapshot is not None
    assert one.snapshot.brokers.cpu_usage_percent.tolist() == other.snapshot.brokers.cpu_usage_percent.tolist()
    assert one.snapshot.bundle_names == other.snapshot.bundle_names


def test_a_small_share_of_memory_is_no_wrong_unit(tmp_path: Path) -> None:
    """Tables have percentages, and 11 % is no 11 MiB."""
    table = (INPUTS / "monitor_brokers/modular_4_0.txt").read_text()
    (tmp_path / "a.txt").write_text(table.replace("19.84", "11.22"))
    reading = read_outputs(tmp_path / "a.txt", INPUTS / "owned/lines_4_2.txt")
    assert not [one for one in reading.contradictions if "check the unit" in one]


def test_a_node_that_is_not_there_is_an_answer(tmp_path: Path) -> None:
    prompt = "[zk: 127.0.0.1:2181(CONNECTED) 1] "
    (tmp_path / "a.txt").write_text(
        f"{prompt}ls /loadbalance/bundle-data/a/b\nNode does not exist: /loadbalance/bundle-data/a/b\n"
    )
    [said] = read_outputs(tmp_path / "a.txt").not_used
    assert said.endswith("an error: Node does not exist: /loadbalance/bundle-data/a/b.")


@pytest.mark.parametrize("topics", ["pretty_2_10.10.2.0.11_8080.json", "one_line_4_0.broker-0.json"])
def test_answers_without_an_end_of_line_are_told_apart(topics: str, tmp_path: Path) -> None:
    """A script appends the answers of several commands to one file; the first ends where the next begins."""
    answer = (INPUTS / "broker_topics" / topics).read_text().rstrip()
    brokers = (INPUTS / "brokers/lines_4_2.txt").read_text()
    (tmp_path / "all.txt").write_text(f"{answer}{brokers}")
    reading = read_outputs(tmp_path / "all.txt")
    assert not [one for one in reading.not_used if "unknown kind" in one]
    assert any(one.startswith("a list of ") for one in reading.found)


def test_the_log_of_java_is_no_answer(tmp_path: Path) -> None:
    """Tools of 3.3 print it above each answer."""
    said = (
        "Nov 28, 2026 11:24:56 AM io.opentelemetry.api.GlobalOpenTelemetry maybeAutoConfigureAndSetGlobal\nINFO: found"
    )
    (tmp_path / "a.txt").write_text(f"{said}\n{(INPUTS / 'brokers/lines_4_2.txt').read_text()}")
    reading = read_outputs(tmp_path / "a.txt")
    assert reading.found[0].startswith("a list of ")
    assert reading.not_used == ()


def test_a_list_of_zookeeper_stands_for_itself_in_a_post() -> None:
    """Names with a port were taken for a map of Groovy where the command stood in another fence."""
    text = "Input:\n\n```\nls /loadbalance/brokers\n```\n\nOutput:\n\n```\n[mq-0:8080, mq-1.mq.svc:8080]\n```\n"
    reading = read(text)
    assert reading.found == ("a list of 2 brokers",)
    assert not any("Groovy" in why for why in reading.not_used)
    (why,) = read("[producers:2, consumers:3]\n").not_used
    assert "a map as Groovy prints it" in why


def test_brokers_without_bundles_are_told_what_is_lacking() -> None:
    """It said that a broker with its load is enough, of a broker with its load."""
    report = json.dumps({**json.loads(REPORT), "bundles": [], "lastStats": {}, "bundleStats": {}})
    reading = read(report)
    assert reading.snapshot is None
    assert reading.not_enough == (
        "The files name 1 broker and no bundle. "
        "A snapshot needs bundles and their owners, as in load reports of brokers that own some."
    )
