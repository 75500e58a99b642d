"""Whatever a terminal, a shell, a tool or a mail program adds to an output, nothing changes and nothing is lost."""

import gzip
import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.doors.chunks import chunks_of
from planner.doors.pieces import NotUsed, Piece, Version
from planner.doors.read import Given, read_given
from planner.doors.reading import Reading
from planner.doors.recognise import pieces_of
from planner.doors.unpack import unpacked

INPUTS = Path(__file__).parent / "inputs"
SAMPLES = (
    "load_report/pretty_4_0.json",
    "bundles_of_namespace/terminal_3_0.txt",
    "anti_affinity/terminal_4_0.txt",
    "owned/lines_4_2.txt",
    "settings_of_broker/dynamic_3_0.txt",
    "settings_file/environment.env",
    "settings_in_yaml/docker-compose.yaml",
    "metrics/two_scrapes_3_3.txt",
    "nothing/no_policies_4_0.txt",
)
HEADERS = "HTTP/1.1 200 OK\r\nDate: Wed, 25 Nov 2026 02:00:00 GMT\r\nContent-Type: application/json\r\n\r\n"
TRIED = (
    "*   Trying 10.0.0.1:8080...\n* Connected to 10.0.0.1 (10.0.0.1) port 8080\n> GET /admin HTTP/1.1\n> Host: a\n>\n"
)
PROGRESS = (
    "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n"
    "                                 Dload  Upload   Total   Spent    Left  Speed\n"
    "\r  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0"
    "\r100  1234  100  1234    0     0  12345      0 --:--:-- --:--:-- --:--:-- 12345\n"
)


def above(text: str) -> Callable[[str], bytes]:
    return lambda answer: (text + answer).encode()


WRAPPED: dict[str, Callable[[str], bytes]] = {
    "slf4j": above('SLF4J: Failed to load class "org.slf4j.impl.StaticLoggerBinder".\nSLF4J(W): No providers.\n'),
    "java options": above("Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nNOTE: Picked up JDK_JAVA_OPTIONS: -Da=b\n"),
    "virtual machine": above("OpenJDK 64-Bit Server VM warning: Option a\n[0.001s][warning][gc] -Xloggc is old.\n"),
    "log4j": above("log4j:WARN No appenders\nERROR StatusLogger No Log4j 2 configuration file found.\n"),
    "kubectl": above('Defaulted container "a" out of: a, b (init)\nUnable to use a TTY - input is not a terminal\n'),
    "old kubectl": above("Defaulting container name to a.\nUse 'kubectl describe pod/x -n p' to see all.\n"),
    "a forwarded port": above("Forwarding from 127.0.0.1:8080 -> 8080\nHandling connection for 8080\n"),
    "shells of pods": above("<<K9s-Shell>> Pod: a/b | Container: c\nAll commands and output from this session will\n"),
    "compose": above("WARN[0000] /srv/compose.yml: `version` is obsolete\nEmulate Docker CLI using podman. Create x\n"),
    "sudo and weaving": above("[sudo] password for ops: \n[AppClassLoader@4e0e2f2a] error cannot determine a\n"),
    "blanks without width": lambda text: text.replace("\n", "\u200b\n").replace(" ", " \u2060").encode(),
    "ssh": above(
        "Warning: Permanently added '10.0.0.1' (ED25519) to the list of known hosts.\nLast login: Tue Nov 24\n"
    ),
    "curl": above(PROGRESS),
    "curl -i": above(HEADERS),
    "curl -v": lambda text: f"{TRIED}< {HEADERS}{{ [123 bytes data]\n{text}* Connection #0 left intact\n".encode(),
    "watch": above("Every 2.0s: cat x                           host: Wed Nov 25 02:00:00 2026\n\n"),
    "date and time": lambda text: f"Wed Nov 25 02:00:00 UTC 2026\n{text}\nreal\t0m2.345s\nuser\t0m3.210s\n".encode(),
    "code fence": lambda text: f"~~~\n{text}\n~~~\n".encode(),
    "lines between": lambda text: f"=====\n{text}\n----------\n".encode(),
    "script": lambda text: f'Script started on 2026 [TERM="xterm"]\n{text}\nScript done on 2026\n'.encode(),
    "colours and titles": lambda text: (
        "\x1b]0;u@h: ~\x07\x1b[01;32mu@h\x1b[00m:\x1b[01;34m~\x1b[00m$ \x1b[?2004l\r\n"
        + re.sub(r'("[^"\n]*")', "\x1b[0;32m\\1\x1b[0m", text)
    ).encode(),
    "line ends of another system": lambda text: text.replace("\r\n", "\n").replace("\n", "\r").encode(),
    "line ends twice": lambda text: text.replace("\r\n", "\n").replace("\n", "\r\r\n").encode(),
    "utf-16 without a mark": lambda text: text.encode("utf-16-le"),
    "utf-32": lambda text: text.encode("utf-32"),
    "gzip twice": lambda text: gzip.compress(gzip.compress(text.encode())),
    "variables of a process": lambda text: text.encode() + b"\x00",
    "indented": lambda text: "".join(f"    {line}" for line in text.splitlines(keepends=True)).encode(),
    "a quotation": lambda text: "".join(f"> {line}" for line in text.splitlines(keepends=True)).encode(),
    "hard blanks": lambda text: text.replace("    ", "\u00a0   ").replace("    ", "\u00a0\u00a0 \u00a0").encode(),
    "log of a container": lambda text: "".join(
        f"2026-11-25T02:00:00.123456789Z {line}" if line.strip() else line for line in text.splitlines(keepends=True)
    ).encode(),
    "prompt after it": lambda text: (
        f"[root@mq-0 pulsar]# cat x\n{text.rstrip()}[root@mq-0 pulsar]# exit\nlogout\n".encode()
    ),
}


def pieces(data: bytes) -> list[Piece]:
    return [piece for chunk in chunks_of(unpacked(data, "pasted"), "pasted") for piece in pieces_of(chunk)]


def shown(found: list[Piece]) -> list[str]:
    return [repr(piece).replace(repr(piece.source), "") for piece in found]


def read(text: str) -> Reading:
    return read_given([Given("pasted text", io.BytesIO(text.encode()))], now_ms=1795225795494)


@pytest.mark.parametrize("wrapping", WRAPPED)
@pytest.mark.parametrize("name", SAMPLES)
def test_what_stands_around_an_answer_changes_nothing(name: str, wrapping: str) -> None:
    data = (INPUTS / name).read_bytes()
    assert shown(pieces(WRAPPED[wrapping](data.decode("utf-8-sig")))) == shown(pieces(data))


def test_what_kubectl_says_below_an_answer_makes_it_no_error() -> None:
    """The release was called an error."""
    found = pieces(
        b"$ kubectl exec mq-0 -- pulsar-admin brokers version\n4.0.8\ncommand terminated with exit code 137\n"
    )
    assert [type(one) for one in found] == [Version, NotUsed]
    assert "an error: command terminated with exit code 137" in str(found[1])
    (alone,) = pieces(b"$ pulsar-admin brokers version\ncommand terminated with exit code 137\n")
    assert "an error: command terminated" in str(alone)


@pytest.mark.parametrize(
    "line",
    [
        'Error from server (NotFound): pods "mq-0" not found',
        "The connection to the server localhost:8080 was refused - did you specify the right host or port?",
        "error: unable to upgrade connection: container not found",
        "bash: pulsar-admin: command not found",
        "sh: 1: bin/pulsar-admin: not found",
    ],
)
def test_errors_of_shells_and_kubectl_are_called_errors(line: str) -> None:
    """They were called commands without answers, or lines of an unknown kind."""
    reading = read(f"$ kubectl exec -n pulsar mq-0 -- bin/pulsar-admin brokers list pulsar\n{line}\n")
    assert [why.partition(": ")[2][:40] for why in reading.not_used] == [f"an error: {line}"[:40]]
    assert not reading.assumed


def test_a_text_that_powershell_goes_on_with_is_read() -> None:
    """Its `>>` appends UTF-16 to a file that may be in another encoding; each letter was a line."""
    data = (INPUTS / "brokers/lines_4_2.txt").read_text().replace("\n", "\r\n")
    plain = shown(pieces(data.encode()))
    for mark in (b"", b"\xff\xfe"):
        assert shown(pieces(b"# saved\r\n" + mark + data.encode("utf-16-le"))) == plain


def test_an_answer_that_is_not_used_is_called_by_its_command() -> None:
    reading = read('$ pulsar-admin bookies list-bookies\n{"bookies": []}\n')
    assert "the answer to bookies list-bookies, which the planner does not use" in reading.not_used[0]


REPORT = (INPUTS / "load_report" / "one_line_4_2.jsonl").read_text().splitlines()
TOPICS = (INPUTS / "broker_topics" / "one_line_4_0.broker-0.json").read_text().strip()
NAMELESS = '{"shop/stock": {"0x00000000_0x40000000": {"persistent": {"persistent://shop/stock/a": {}}}}}'
BUNDLES = '{"boundaries": ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"], "numBundles": 4}'


@pytest.mark.parametrize(
    "prompt",
    [
        "user@host:~$ ",
        "[root@toolset-0 pulsar]# ",
        "I have no name!@pulsar-toolset-0:/pulsar$ ",
        "root@mq-0:/pulsar# ",
        "pulsar-broker-0:/pulsar$ ",
        "bash-5.1$ ",
        "/pulsar $ ",
        "$ ",
        "PS C:\\Users\\me> ",
        "(prod) me@laptop ~/pulsar % ",
    ],
)
def test_answers_without_line_ends_are_followed_by_prompts(prompt: str) -> None:
    """`curl` prints no line end, so that the next prompt stands on the line of the answer."""
    url = "http://mq-0.mq.east.svc:8080/admin/v2"
    text = f"{prompt}curl -s {url}/broker-stats/load-report\n{REPORT[0]}{prompt}curl -s {url}/broker-stats/topics\n"
    text += f"{TOPICS}{prompt}curl -s {url}/namespaces/shop/orders/bundles\n{BUNDLES}{prompt}\n"
    reading = read(text)
    assert reading.found == ("load reports of 1 broker", "topics of 1 broker", "bundles of 1 namespace")
    assert not reading.not_used
    assert not [text for text in reading.assumed if "does not name" in text]


@pytest.mark.parametrize(
    ("of_report", "of_bundles"),
    [
        ("== mq-0 ==\n", "== shop/orders ==\n"),
        ("==> load-report.json <==\n", "==> shop/orders <==\n"),
        ("mq-0 | CHANGED | rc=0 >>\n", "shop/orders: "),
        (">>> mq-0\n", "shop/orders\n"),
        ("--- mq-0:8080 ---\n", "--- shop/orders ---\n"),
    ],
)
def test_a_heading_names_what_follows(of_report: str, of_bundles: str) -> None:
    """Scripts print the name of a broker or namespace, and its answer below."""
    reading = read(f"{of_report}{REPORT[0]}\n{of_bundles}{BUNDLES}\n{of_bundles.replace('orders', 'new')}{BUNDLES}\n")
    assert "load reports of 1 broker" in reading.found
    assert "bundles of 2 namespaces" in reading.found
    assert not reading.not_used
    assert not [text for text in reading.assumed if "does not name" in text]


def test_the_pod_of_a_command_names_its_broker() -> None:
    hosts = [f"pulsar-broker-{at}.pulsar-broker.svc:8080" for at in range(2)]
    text = "\n".join(hosts) + "\n"
    for at, answer in enumerate((NAMELESS, NAMELESS.replace("0x0000", "0x4000").replace("_0x4", "_0x8"))):
        text += f"$ kubectl exec -n mq pulsar-broker-{at} -- bin/pulsar-admin broker-stats topics\n{answer}\n"
        text += f"$ kubectl exec -n mq pulsar-broker-{at} -- curl -s http://localhost:8080/metrics/\n"
        text += f'pulsar_lb_cpu_usage{{cluster="east"}} {at + 1}0\n'
    reading = read(text)
    assert reading.snapshot is not None
    assert list(reading.snapshot.brokers.name) == hosts
    assert reading.snapshot.brokers.cpu_usage_percent.tolist() == [10.0, 20.0]
    assert not [text for text in reading.assumed if "does not name" in text]


def test_a_list_of_brokers_names_none_of_the_answers_below_it() -> None:
    reading = read(f"mq-1:8080\nmq-2:8080\n{NAMELESS}\n")
    assert not [
        piece for piece in pieces(f"mq-1:8080\nmq-2:8080\n{NAMELESS}\n".encode()) if getattr(piece, "broker", "")
    ]
    assert any("does not say which broker" in text for text in reading.assumed)


def test_a_file_of_logs_alone_says_so() -> None:
    reading = read("2026-11-25T03:12:11,004+0000 [main] INFO  org.apache.pulsar.Tool - started\n" * 3)
    assert reading.not_used == ("pasted text: it holds log lines, prompts and headings alone.",)


def test_comments_that_look_like_headings_do_not_part_a_settings_file() -> None:
    text = "### --- Load balancer --- ###\nloadBalancerEnabled=true\n# ==== a ====\nloadBalancerSheddingEnabled=false\n"
    found = [piece for piece in pieces(text.encode()) if not isinstance(piece, NotUsed)]
    assert len(found) == 1


POD_PREFIXES = {
    "kubectl logs --prefix": "[pod/pulsar-broker-{}/broker] ",
    "kubectl logs --prefix --timestamps": "[pod/pulsar-broker-{}/broker] 2026-11-25T02:00:00.123456789Z ",
    "stern": "pulsar-broker-{} broker ",
    "stern --all-namespaces": "messaging pulsar-broker-{} broker ",
    "docker compose logs": "pulsar-broker-{}  | ",
    "docker service logs": "pulsar_broker.{}.x7k2@node-4    | ",
    "journalctl": "Nov 25 02:00:0{0} broker-{0} pulsar[812]: ",
    "pdsh": "pulsar-broker-{}: ",
}


@pytest.mark.parametrize("prefix", POD_PREFIXES.values(), ids=POD_PREFIXES.keys())
@pytest.mark.parametrize("name", ["load_report/pretty_4_0.json", "metrics/scrape_4_2.prom"])
def test_lines_of_several_pods_are_sorted_by_pod(prefix: str, name: str) -> None:
    """Pods log at the same time; each line has the name of its pod."""
    one = (INPUTS / name).read_text().rstrip()
    other = one.replace("mq-0", "mq-1").replace("10.2.0.11", "10.2.0.12").replace("0x00000000_0x4", "0x40000000_0x8")
    lines = [
        prefix.format(pod) + line
        for pair in zip(one.split("\n"), other.split("\n"), strict=True)
        for pod, line in enumerate(pair)
    ]
    assert shown(pieces("\n".join(lines).encode())) == shown(pieces(f"{one}\n== other ==\n{other}\n".encode()))


def test_the_pod_of_a_log_names_its_broker() -> None:
    """An answer that does not say whose it is follows a report of the same pod."""
    reports = REPORT[0], REPORT[1]
    owned = [
        f"{name}    [broker_assignment=shared is_controlled=false is_active=true]"
        for name in ("a/b/0x00000000_0x80000000", "a/b/0x80000000_0xffffffff")
    ]
    logged = [f"[pod/broker-{pod}/broker] {line}" for pod, line in enumerate(reports)]
    logged += [f"[pod/broker-{pod}/broker] {line}" for pod, line in reversed(list(enumerate(owned)))]
    mixed, apart = read("\n".join(logged)), read("\n".join(reports))
    assert mixed.snapshot is not None
    assert apart.snapshot is not None
    owner = dict(zip(mixed.snapshot.bundle_names, mixed.snapshot.bundles.owner.tolist(), strict=True))
    assert [owner["a/b/0x00000000_0x80000000"], owner["a/b/0x80000000_0xffffffff"]] == [0, 1]


def test_a_pod_that_logs_nothing_but_messages_is_no_matter() -> None:
    lines = [
        f"[pod/broker-0/broker] {line}" for line in (INPUTS / "load_report" / "pretty_4_0.json").read_text().split("\n")
    ]
    lines[3:3] = ["[pod/broker-1/broker] 2026-11-25T02:00:00,123+0000 [main] INFO  org.apache.pulsar - started", ""]
    assert not read("\n".join(lines)).not_used


@pytest.mark.parametrize(
    "text", ["loadBalancerEnabled | true\nloadBalancerSheddingEnabled | false\n", "a: {}\nb: []\nc: {}\n"]
)
def test_keys_are_no_pods(text: str) -> None:
    assert unpacked(text.encode(), "x") == text.encode()


def test_long_logs_of_several_pods_are_sorted() -> None:
    report = (INPUTS / "load_report" / "pretty_4_0.json").read_text().split("\n")
    noise = "2026-11-25T02:00:00,123+0000 [main] INFO  org.apache.pulsar - " + "x" * 200
    lines = [f"[pod/broker-{at % 2}/broker] {line}" for at, line in enumerate([noise] * 20_000)]
    lines += [f"[pod/broker-{pod}/broker] {line}" for line in report for pod in (0, 1)]
    found = read("\n".join(lines))
    assert found.found == ("load reports of 1 broker",)
