"""Settings in every form in which people have them at hand come out the same, and nothing beside them does."""

import base64
import io
from pathlib import Path

import pytest

from planner.cluster.releases import release
from planner.doors.chunks import chunks_of
from planner.doors.lint import lint_file
from planner.doors.pieces import Configuration, Source
from planner.doors.read import Given, read_given, read_outputs
from planner.doors.reading import Reading
from planner.doors.recognise import pieces_of
from planner.doors.vocabulary import configuration, is_before_and_after

INPUTS = Path(__file__).parent / "inputs"
INTERVAL, ENABLED = "loadBalancerSheddingIntervalMinutes", "loadBalancerEnabled"


def read(text: str) -> Reading:
    return read_given([Given("pasted text", io.BytesIO(text.encode()))], now_ms=1)


@pytest.mark.parametrize(
    ("name", "interval"),
    [
        ("settings_file/grep.txt", "5"),
        ("settings_file/systemd.txt", "5"),
        ("settings_file/exported.txt", "5"),
        ("settings_file/continued.conf", "5"),
        ("options_of_commands/docker_run.txt", "5"),
        ("options_of_commands/helm_set.txt", "5"),
        ("options_of_commands/docker_inspect_format.txt", "5"),
        ("settings_in_yaml/docker_inspect_env.json", "7"),
        ("settings_in_yaml/describe_config_map.txt", "7"),
        ("settings_in_yaml/helm_get_values.txt", "7"),
        ("settings_in_yaml/ansible_task.yaml", "7"),
        ("settings_in_yaml/kustomization.yaml", "7"),
        ("settings_file/systemctl_show.txt", "5"),
        ("shell_variables/Dockerfile", "5"),
        ("shell_variables/Dockerfile_2_8", "5"),
        ("shell_variables/fish.txt", "5"),
        ("terraform/variables.tfvars", "5"),
        ("terraform/merged_3_0.tf", "5"),
        ("terraform/containers.tf", "5"),
        ("terraform/written.tf.json", "5"),
        ("terraform/job.nomad.hcl", "5"),
    ],
)
def test_each_form_gives_the_same_settings(name: str, interval: str) -> None:
    reading = read_outputs(INPUTS / name)
    [found] = reading.configurations
    assert {INTERVAL: interval, ENABLED: "true"}.items() <= dict(found.values).items()
    assert "SECRET" not in repr(reading)


def test_a_value_may_go_on_in_the_next_line() -> None:
    [found] = read_outputs(INPUTS / "settings_file" / "continued.conf").configurations
    assert found.values["loadBalancerLoadSheddingStrategy"].endswith("impl.ThresholdShedder")


def test_what_was_last_applied_is_no_second_file() -> None:
    """The annotation of `kubectl apply` holds JSON on a line of its own; it was read as settings after a change."""
    reading = read_outputs(INPUTS / "settings_in_yaml" / "config_map_applied.yaml")
    [found] = reading.configurations
    assert dict(found.values) == {INTERVAL: "7"}
    assert not reading.not_used


@pytest.mark.parametrize(
    ("name", "setting", "before", "after"),
    [
        ("unified.diff", INTERVAL, "1", "5"),
        ("plain.txt", "loadBalancerBrokerThresholdShedderPercentage", "10", "20"),
        ("git.txt", "loadBalancerNamespaceMaximumBundles", "128", "256"),
        ("helm_diff.txt", INTERVAL, "1", "5"),
        ("../terraform_plan/set_3_3.txt", INTERVAL, "1", "5"),
        ("../terraform_plan/values_4_0.txt", INTERVAL, "1", "5"),
        ("../terraform_plan/config_map_4_2.txt", INTERVAL, "1", "5"),
        ("../terraform/plan_1_5.json", INTERVAL, "1", "5"),
    ],
)
def test_differences_are_settings_before_and_after(name: str, setting: str, before: str, after: str) -> None:
    one, other = read_outputs(INPUTS / "differences" / name).configurations
    assert (one.values[setting], other.values[setting]) == (before, after)
    assert one.source.file.endswith("(before)")


@pytest.mark.parametrize(
    "name",
    [
        "streamingDispatch",
        "managedLedgerNumWorkerThreads",
        "dispatcherEntryFilterRescheduledMessageDelay",
        "dispatcherReadFailureBackoffMaxTimeInMs",
        "loadManagerMigrationEnabled",
    ],
)
def test_a_setting_that_only_other_releases_have_is_not_called_misspelt(name: str) -> None:
    """All names of `ServiceConfiguration` of 2.7.5 to 5.0.0-M1 were asked for; these come nearest to settings here."""
    found = configuration([(name, "5")], Source("broker.conf"), "file")
    assert (found.misspelt, found.foreign) == ({}, (name,))


def test_a_table_with_narrow_columns_is_read_whole() -> None:
    """`column -t` and `awk` part names and values by one or two blanks."""
    rows = "zookeeperServers zk:2181\nloadBalancerSheddingEnabled false\nloadBalancerSheddingIntervalMinuets 5\n"
    data = f"$ pulsar-admin brokers get-runtime-config | awk '{{print $1, $2}}'\n{rows}".encode()
    (running,) = (piece for chunk in chunks_of(data, "1.txt") for piece in pieces_of(chunk))
    assert isinstance(running, Configuration)
    assert (running.form, running.values) == ("runtime", {"loadBalancerSheddingEnabled": "false"})
    (file,) = read(rows).configurations
    assert (file.form, file.values, file.foreign) == ("file", running.values, ("zookeeperServers",))
    assert file.misspelt == {"loadBalancerSheddingIntervalMinuets": "loadBalancerSheddingIntervalMinutes"}


def test_lines_that_grep_found_in_several_files_are_parted() -> None:
    """The last file counted, which may be that of a standalone broker."""
    text = (
        "conf/broker.conf:12:loadBalancerEnabled=true\nconf/broker.conf:19:loadBalancerSheddingIntervalMinutes=9\n"
        "conf/standalone.conf:7:loadBalancerEnabled=false\n"
    )
    reading = read(f"$ grep -rn loadBalancer conf/\n{text}")
    (file,) = reading.configurations
    assert file.values == {"loadBalancerEnabled": "true", "loadBalancerSheddingIntervalMinutes": "9"}
    assert "lines of conf/standalone.conf left out: those of broker.conf count" in reading.not_used[0]


def test_values_between_sentences_are_read() -> None:
    text = 'and our values:\n\nbroker:\n  configData:\n    loadBalancerSheddingIntervalMinutes: "7"\n\nThanks\nJo\n'
    reading = read(text)
    (file,) = reading.configurations
    assert file.values == {"loadBalancerSheddingIntervalMinutes": "7"}
    assert reading.assumed == ("pasted text: sentences among the lines of YAML are left out.",)
    template = read(text.replace("Thanks", "{{ end }}"))
    assert template.configurations == ()
    assert "helm template" in template.not_used[0]


def test_names_without_values_are_no_settings() -> None:
    reading = read("$ pulsar-admin brokers list-dynamic-config\nloadBalancerEnabled\nloadManagerClassName\n")
    assert reading.found == ()
    [why] = reading.not_used
    assert why.startswith("pasted text, line 2: names of settings without values; use brokers get-all-dynamic-config")


def test_settings_as_java_prints_them_are_dynamic_below_their_command() -> None:
    reading = read_outputs(INPUTS / "settings_as_java" / "dynamic.txt")
    assert reading.found == ("dynamic settings",)


@pytest.mark.parametrize(
    ("name", "release", "nic_gbps"),
    [("commons_2_3.txt", "2.3.0", None), ("lombok_3_0.txt", "3.0.7", 10.0), ("standalone_4_0.txt", "", None)],
)
def test_a_broker_logs_its_settings_when_it_starts(name: str, release: str, nic_gbps: float | None) -> None:
    """The fields count, and not the file that it read them from."""
    reading = read_outputs(INPUTS / "load_report" / "simple_2_5.json", INPUTS / "log_of_broker" / name)
    assert "settings of a running broker" in reading.text
    assert reading.snapshot is not None
    settings, info = reading.snapshot.settings, reading.snapshot.info
    assert settings.overrides[INTERVAL] == 7
    assert settings.overrides.get("loadBalancerOverrideBrokerNicSpeedGbps") == nic_gbps
    assert info.settings_from == "brokers"
    assert info.pulsar_version == release or not release
    assert not reading.not_used
    assert "not-kept" not in repr(reading)


def logged(text: str) -> Reading:
    report = (INPUTS / "load_report" / "simple_2_5.json").read_bytes()
    files = [Given("report.json", io.BytesIO(report)), Given("log.txt", io.BytesIO(text.encode()))]
    return read_given(files, now_ms=1)


@pytest.mark.parametrize("width", [100, 136, 200])
def test_a_log_that_a_terminal_broke_is_joined(width: int) -> None:
    text = (INPUTS / "log_of_broker" / "standalone_4_0.txt").read_text()
    reading = logged("\n".join(text[at : at + width] for at in range(0, len(text), width)))
    assert reading.snapshot is not None
    assert reading.snapshot.settings.overrides[INTERVAL] == 7
    assert not reading.not_used


def test_a_log_that_was_cut_is_named() -> None:
    """What stands last may be cut as well: 1 of 15."""
    text = (INPUTS / "log_of_broker" / "standalone_4_0.txt").read_text()
    reading = logged(text[: text.index(f"{INTERVAL}=7") + len(INTERVAL) + 2])
    assert reading.snapshot is not None
    assert INTERVAL not in reading.snapshot.settings.overrides
    assert "is cut" in " ".join(reading.not_used)


@pytest.mark.parametrize(
    "value",
    [
        "{{ enabled }}",
        "{{ enabled | default('true') }}",
        "${ENABLED}",
        "<%= @enabled %>",
        "#{Enabled}",
        "%ENABLED%",
        "@pulsar.enabled@",
        "__ENABLED__",
    ],
)
def test_what_a_template_fills_in_is_not_false(value: str) -> None:
    reading = read(f"{ENABLED}={value}\n{INTERVAL}=7\n")
    [found] = reading.configurations
    assert dict(found.values) == {INTERVAL: "7"}
    assert found.variables == {ENABLED: False}
    assert f"{ENABLED} left out: variables, whose values stand elsewhere" in " ".join(reading.not_used)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("loadBalancerSheddingExcludedNamespaces", "shop/__orders__,shop/__stock__"),
        ("loadBalancerLoadSheddingStrategy", "org.example.__Own__.Shedder"),
        ("loadBalancerBrokerOverloadedThresholdPercentage", "85"),
    ],
)
def test_a_value_with_like_signs_is_no_variable(name: str, value: str) -> None:
    [found] = read(f"{name}={value}\n").configurations
    assert found.variables == {}
    assert found.values[name] == value


def test_the_default_of_a_variable_counts() -> None:
    text = "services:\n  broker:\n    environment:\n"
    reading = read(f"{text}      - {ENABLED}=${{ON:-false}}\n      - {INTERVAL}=${{EVERY}}\n")
    [found] = reading.configurations
    assert dict(found.values) == {ENABLED: "false"}
    assert f"{ENABLED}: variables, whose defaults are taken" in " ".join(reading.not_used)


@pytest.mark.parametrize("second", ["{% else %}\n", ""])
def test_a_setting_with_several_values_is_named(second: str) -> None:
    reading = read(f"{INTERVAL}=7\n{second}{ENABLED}=true\n{INTERVAL}=9\n")
    assert reading.configurations[0].values[INTERVAL] == "9"
    assert f"{INTERVAL} stand there with several values" in " ".join(reading.not_used)


@pytest.mark.parametrize("order", [("PULSAR_PREFIX_", ""), ("", "PULSAR_PREFIX_")])
@pytest.mark.parametrize("form", ["{}{}={}\n", "      {}{}: '{}'\n"])
def test_images_write_variables_with_the_prefix_last(order: tuple[str, str], form: str) -> None:
    lines = "".join(form.format(prefix, INTERVAL, 5 if prefix else 7) for prefix in order)
    above = "services:\n  broker:\n    environment:\n" if ":" in form else ""
    [found] = read(above + lines).configurations
    assert found.values[INTERVAL] == "5"


def test_brokers_that_differ_are_no_change() -> None:
    text = "".join(f"broker-{at} | CHANGED | rc=0 >>\n{ENABLED}=true\n{INTERVAL}={at + 1}\n" for at in range(2))
    reading = read(f"$ ansible brokers -a 'grep ^load broker.conf'\n{text}")
    assert not is_before_and_after(reading.configurations)
    assert not reading.not_used


@pytest.mark.parametrize(
    "table",
    [
        "root         1     0 12 08:00 ?        01:02:03 java -Xmx2g org.apache.pulsar.PulsarBrokerStarter\n",
        "NAME              READY   STATUS    RESTARTS   AGE\nmq-broker-0       1/1     Running   0          5d\n",
        "Broker\tIn\tOut\nhttp://mq-0:8080\t100\t200\n",
    ],
)
def test_other_tables_are_no_settings(table: str) -> None:
    """Each was reported as dynamic settings."""
    reading = read(table)
    assert reading.found == ()
    assert reading.not_used
    assert not reading.configurations


def test_data_of_a_config_map_are_no_overrides() -> None:
    values = f'{{"PULSAR_MEM": "-Xmx1g", "{ENABLED}": "true", "{INTERVAL}": "7"}}'
    [found] = read(f"$ kubectl get cm mq-broker -o jsonpath='{{.data}}'\n{values}$ ").configurations
    assert found.form == "file"
    assert dict(found.values) == {ENABLED: "true", INTERVAL: "7"}


def test_a_merge_names_what_stands_elsewhere() -> None:
    """All of it was left out, and nothing was said of brokers."""
    text = (INPUTS / "terraform" / "merged_3_0.tf").read_text().replace("{ defaultNumberOfNamespaceBundles = 8 }", "x")
    reading = read(text)
    assert reading.configurations[0].values == {ENABLED: "true", INTERVAL: "5"}
    assert "a part of merge() left out: variables" in " ".join(reading.not_used)


@pytest.mark.parametrize("between", [";", "; ", ", ", "  "])
def test_settings_on_one_line_are_parted(between: str) -> None:
    """The switch was reported as false."""
    reading = read(f"{ENABLED}=true{between}{INTERVAL}=7\n")
    assert reading.configurations[0].values == {ENABLED: "true", INTERVAL: "7"}
    assert not reading.not_used


def test_settings_of_a_proxy_are_not_those_of_brokers() -> None:
    line = f"helm upgrade x y --set broker.configData.{ENABLED}=true,proxy.configData.{ENABLED}=false"
    reading = read(f"{line} --set-string broker.configData.{INTERVAL}=7\n")
    assert reading.configurations[0].values == {ENABLED: "true", INTERVAL: "7"}


@pytest.mark.parametrize("name", [f"PULSAR_PREFIX_{ENABLED}", "broker.conf"])
def test_a_secret_is_decoded(name: str) -> None:
    """Its base64 was reported as false."""
    value = base64.b64encode(b"true" if ENABLED in name else f"{ENABLED}=true".encode()).decode()
    text = f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: mq-broker\ndata:\n  {name}: {value}\n"
    reading = read(text)
    assert reading.configurations[0].values == {ENABLED: "true"}
    assert not reading.not_used


def test_a_list_is_the_value_of_a_setting() -> None:
    """It was left out without a word."""
    name = "loadBalancerSheddingExcludedNamespaces"
    text = f"broker:\n  configData:\n    {ENABLED}: 'true'\n    PULSAR_PREFIX_{name}:\n      - shop/a\n      - shop/b\n"
    assert read(text).configurations[0].values[name] == "shop/a,shop/b"


@pytest.mark.parametrize("words", ["{} -n mq", "-n mq {} -c broker", "{} --overwrite"])
def test_variables_that_kubectl_sets_are_settings(words: str) -> None:
    """It was called a command without its answer."""
    line = f"kubectl set env {words.format('statefulset/mq-broker')} \\\n  PULSAR_PREFIX_{INTERVAL}=7 {ENABLED}=true"
    reading = read(f"$ {line}\nstatefulset.apps/mq-broker env updated\n")
    assert reading.configurations[0].values == {INTERVAL: "7", ENABLED: "true"}
    assert not reading.not_used


def test_variables_that_kubectl_sets_for_a_proxy_are_named() -> None:
    reading = read(f"kubectl set env statefulset/mq-proxy PULSAR_PREFIX_{ENABLED}=false\n")
    assert not reading.configurations
    assert reading.not_used == ("pasted text: a command that changes statefulset/mq-proxy, which is not of brokers.",)


SHEDDING = "loadBalancerSheddingEnabled"


@pytest.mark.parametrize("name", [SHEDDING, f"PULSAR_PREFIX_{SHEDDING}"])
def test_a_variable_that_kubectl_removes_is_named(name: str) -> None:
    """It was passed over without a word."""
    reading = read(f"kubectl set env statefulset/mq-broker --env={ENABLED}=true {name}- HOME-\n")
    assert reading.configurations[0].values == {ENABLED: "true"}
    said = f"pasted text: a command that removes {SHEDDING}; use brokers get-runtime-config for the values in force"
    assert [one.partition(",")[0] for one in reading.not_used] == [said]
    [alone] = read(f"kubectl set env statefulset/mq-broker {name}-\n").not_used
    assert alone.startswith(said)


@pytest.mark.parametrize("options", [f"--config {SHEDDING} --value false", f"-c {SHEDDING} \\\n  -v false"])
def test_an_override_that_a_command_sets_is_named(options: str) -> None:
    """It was called a command without its answer."""
    reading = read(
        f"$ bin/pulsar-admin brokers update-dynamic-config {options}\n$ pulsar-admin brokers version\n4.0.1\n"
    )
    [why] = [one for one in reading.not_used if "override" in one]
    assert f"changes the override of {SHEDDING}; use brokers get-all-dynamic-config" in why
    assert len(reading.found) == 1


def test_an_override_that_brokers_refuse_is_named() -> None:
    [why] = read("pulsar-admin brokers update-dynamic-config --config=zookeeperServers --value=x\n").not_used
    assert "a setting that the planner does not use" in why
    [why] = read("pulsar-admin brokers update-dynamic-config --config=loadBalancerEnabled --value=false\n").not_used
    assert "overrides loadBalancerEnabled, which brokers refuse" in why


def test_the_file_of_a_proxy_has_no_settings_of_the_load_balancer(tmp_path: Path) -> None:
    """It was found to hold 0 settings, with the advice to make a scenario of them."""
    (tmp_path / "proxy.conf").write_text("brokerServiceURL=pulsar://a:6650\nservicePort=6650\n", encoding="utf-8")
    reading = read_outputs(tmp_path / "proxy.conf")
    assert reading.found == ()
    assert reading.not_enough.startswith("Nothing in the files says what brokers there are.")
    assert "the load balancer does not read brokerServiceURL" in reading.not_used[0]


STATEFUL_SET = """apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: broker
spec:
  template:
    spec:
      containers:
        - name: broker
          envFrom:
            - configMapRef:
                name: broker-config
          env:
            - name: PULSAR_PREFIX_loadBalancerSheddingEnabled
              value: "false"
            - name: advertisedAddress
              valueFrom: {fieldRef: {fieldPath: status.podIP}}
            - name: loadBalancerSheddingIntervalMinutes
              valueFrom: {configMapKeyRef: {name: other, key: minutes}}
"""
CONFIG_MAP = """---
apiVersion: v1
kind: ConfigMap
metadata:
  name: broker-config
data:
  loadBalancerNamespaceMaximumBundles: "64"
"""


def test_settings_that_a_manifest_only_names_are_said() -> None:
    """They were left out in silence."""
    alone = read(STATEFUL_SET)
    [why] = [one for one in alone.not_used if "names only where" in one]
    assert "left out: broker-config, loadBalancerSheddingIntervalMinutes. The text names" in why
    both = read(STATEFUL_SET + CONFIG_MAP)
    [why] = [one for one in both.not_used if "names only where" in one]
    assert "broker-config" not in why
    assert both.configurations[0].values == {
        "loadBalancerSheddingEnabled": "false",
        "loadBalancerNamespaceMaximumBundles": "64",
    }
    other = read(STATEFUL_SET.replace("broker", "proxy"))
    assert not other.configurations
    assert not any("names only where" in one for one in other.not_used)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("values.yaml", "broker:\n  configData:\n    {}: '5000'\n    loadBalancerEnabled: 'true'\n"),
        ("compose.yml", "services:\n  broker:\n    environment:\n      - {}=5000\n      - loadBalancerEnabled=true\n"),
        ("map.yaml", "apiVersion: v1\nkind: ConfigMap\ndata:\n  {}: '5000'\n  loadBalancerEnabled: 'true'\n"),
        ("run.sh", "docker run -e {}=5000 -e loadBalancerEnabled=true apachepulsar/pulsar:4.0.8 bin/pulsar broker\n"),
        (
            "main.tf",
            'resource "helm_release" "a" {{\n set {{\n  name = "broker.configData.{}"\n  value = "5000"\n }}\n}}\n',
        ),
    ],
)
def test_variables_that_images_ignore_are_left_out(name: str, text: str, tmp_path: Path) -> None:
    """The broker.conf of Pulsar's images has no line for some settings: without the prefix, nothing sets them."""
    path = tmp_path / name
    path.write_text(text.format("minUnloadMessage"), encoding="utf-8")
    [found] = read_outputs(path).configurations
    assert "minUnloadMessage" not in found.values
    assert found.unprefixed == ("minUnloadMessage",)
    assert any("ignore it without PULSAR_PREFIX_" in one for one in read_outputs(path).not_used)
    assert "setting_without_prefix" in {one.code for one in lint_file(path)}
    path.write_text(text.format("loadBalancerSheddingExcludedNamespaces"), encoding="utf-8")
    assert "setting_of_another_release" in {one.code for one in lint_file(path, release("4.0.8"))}
    path.write_text(text.format("PULSAR_PREFIX_minUnloadMessage"), encoding="utf-8")
    [found] = read_outputs(path).configurations
    assert found.values["minUnloadMessage"] == "5000"
    assert found.unprefixed == ()


def test_a_settings_file_needs_no_prefix(tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text("minUnloadMessage=5000\n", encoding="utf-8")
    (tmp_path / "map.yaml").write_text("kind: ConfigMap\ndata:\n  broker.conf: |\n    minUnloadMessage=5000\n")
    for name in ("broker.conf", "map.yaml"):
        [found] = read_outputs(tmp_path / name).configurations
        assert found.values == {"minUnloadMessage": "5000"}


@pytest.mark.parametrize("name", ["loadBalancerSheddingExcludedNamespaces", "loadBalancerOverrideBrokerNics"])
def test_settings_of_a_later_release_have_no_line_in_images_either(name: str) -> None:
    """Both were read as settings of the brokers, although the broker.conf of images has no line for them."""
    [found] = read(f"broker:\n  configData:\n    {ENABLED}: 'true'\n    {name}: eth0\n").configurations
    assert (dict(found.values), found.unprefixed) == ({ENABLED: "true"}, (name,))


@pytest.mark.parametrize("line", ["{% if secure %}", "{{- end }}", "{{ key }}={{ value }}", "<% unless secure %>"])
def test_lines_of_a_template_are_called_so(line: str) -> None:
    """They were lines of an unknown kind."""
    reading = read(f"{ENABLED}=true\n{line}\n{INTERVAL}=7\n")
    assert reading.configurations[0].values == {ENABLED: "true", INTERVAL: "7"}
    (why,) = reading.not_used
    assert "1 line of a template, which decides what stands there; use what it writes" in why
