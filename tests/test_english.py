"""Documents and messages are plain English: short sentences, and none of the words that readers stumbled over."""

import ast
import csv
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.test_messages import texts

ROOT = Path(__file__).parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"
DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
MOST_WORDS = 35
MEAN_WORDS = 20

NOT_A_NOUN = "longer|more|less|fewer|better|worse|larger|smaller|higher|lower|greater|later|earlier|different"
BANNED = {
    r"\bnobody\b": "no broker, no client, or the passive voice",
    r"\banew\b": "again, or from the start",
    r"\b(?:comes|came) to\b": "is, results in, adds up to",
    r"\b(?:tells|told)\b(?! apart)": "reports, shows, says",
    r"\bpassed over\b": "skipped",
    r"\bpeak usage\b": "highest usage (now), or peak (at any time on the way)",
    r"\bcuts? off\b": "disconnects, disconnected; truncated, of a text",
    r"\bsuppos(?:e|es|ed|ing|ition|itions)\b": "assume, assumption",
    r"\bheed(?:s|ed)?\b": "takes into account",
    r"\bmend(?:s|ed)?\b": "fix",
    r"\bfor good\b": "permanently",
    rf"(?<!there )\bis no (?!(?:{NOT_A_NOUN})\b)\w": "is not a, is not valid",
    r"\bGive (?!up\b|each\b|\w+ more\b)": "Use, Specify, Enter",
    r"\b(?:[Ss])ooner\b": "faster, earlier",
    r"\bdoes not fit\b(?! in\b| into\b)": "does not match, is too large",
    r"\bwhom\b": "a plural or a passive; brokers are never who",
    r"\bso many\b": "the number",
    r"\bin between\b": "between, separated by",
    r"\bending of its name\b": "file extension",
    r"\breckon(?:s|ed)?\b": "calculate, estimate",
    r"\bwho serves\b": "the owner",
    r"\bgrowth until saturation\b": "headroom",
    r"\btoo full\b": "overloaded",
    r"\bthr(?:ow|ows|ew|own) off\b": "shed",
    r"\bwander(?:s|ed)?\b": "move",
    r"\breconnecting clients\b": "disconnected clients",
    r"\bno plan (?:gets )?below\b": "lower bound",
    r"\bput aside\b": "set aside",
    r"\bbeaten by no other\b": "Pareto-optimal",
    r"\bknee\b": "balanced choice",
    r"\bminutes away\b": "downtime",
    r"\bthat (?:was|were) just elected\b": "newly elected",
    r"\bthe way back\b": "the undo script",
    r"\bbest by the rule\b": "best candidate",
    r"\b1 moves\b": "1 move",
    r"\d pts\b": "points",
    r"\b\d+\.\d+ x\b": "1.32x, without a space",
}
"""Patterns of odd phrases, each with better words. Case counts only where a pattern begins with a capital."""

OF_MANY_MEANINGS = {
    "server",
    "node",
    "range",
    "channel owner",
    "internal",
    "version",
    "load",
    "score",
    "usage",
    "most used",
    "round",
    "run",
    "give",
    "cut",
    "capture",
    "moment",
    "frame",
    "step",
    "play",
    "pattern",
    "on its way",
    "unload by hand",
    "reason",
    "choose",
    "take",
    "went elsewhere",
    "refused",
    "75.9950 %",
    "54428.93 msg/s",
    "51.933 MiB/s",
}
"""Words of the column *Not* of the glossary that are right elsewhere, so that a list of words cannot judge them."""


def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern that ignores the case, unless it is one about a capital."""
    return re.compile(pattern, 0 if re.search(r"\\b[A-Z]", pattern) else re.IGNORECASE)


RULES = [(compiled(pattern), better) for pattern, better in BANNED.items()]


def odd_words(text: str) -> list[str]:
    """Return each odd phrase of a text with the better one."""
    return [f"{found.group()!r}: {better}" for rule, better in RULES for found in rule.finditer(text)]


def prose(page: str) -> str:
    """Return a document without code blocks and generated blocks."""
    page = re.sub(r"^<!-- ([a-z]+) -->\n.*?^<!-- end of \1 -->$", "", page, flags=re.DOTALL | re.MULTILINE)
    page = re.sub(r"^ *```.*?^ *```$", "", page, flags=re.DOTALL | re.MULTILINE)
    page = re.sub(r"\n\n(?: {4}.*\n|\n)+", "\n\n", page)
    return re.sub(r"<!--.*?-->|<a id=.*?></a>", "", page, flags=re.DOTALL)


def sentences(page: str) -> list[str]:
    """Return the sentences of a document, apart from tables, headings and code.

    The end of a paragraph or list item also ends a sentence.
    """
    lines = [line for line in prose(page).splitlines() if not line.startswith(("#", "|", "!["))]
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|[0-9]+\.) )", "\n".join(lines))
    found = []
    for block in blocks:
        text = re.sub(r"^\s*(?:[-*]|[0-9]+\.) ", "", " ".join(block.split()))
        text = re.sub(r"^\*\*[^*]+[.:]\*\*", "", text)  # a heading within the line
        text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "code", text))
        found += [one for one in re.split(r"(?<=[.!?])[*\")\]]*\s+", text) if re.search(r"\w", one)]
    return found


def words(sentence: str) -> int:
    return len(re.findall(r"[\w'.,/%-]*\w[\w'.,/%-]*", sentence))


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_sentences_of_the_documents_are_short(page: Path) -> None:
    found = sentences(page.read_text(encoding="utf-8"))
    assert found
    assert not [one for one in found if words(one) > MOST_WORDS]
    assert sum(map(words, found)) / len(found) < MEAN_WORDS


@pytest.mark.parametrize("page", [page for page in DOCS if page != GLOSSARY], ids=lambda page: page.name)
def test_documents_use_plain_words(page: Path) -> None:
    text = prose(page.read_text(encoding="utf-8"))
    assert not [f"{line}: {odd}" for line in text.splitlines() for odd in odd_words(line)]
    assert not odd_words(" ".join(text.split()))


def shown(path: Path) -> Iterator[str]:
    """Yield every text of a file that a person can see: of commands the help, too, of tables every cell."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.reader(file):
                yield from row
        return
    if path.suffix != ".py":
        yield from path.read_text(encoding="utf-8").splitlines()
        return
    yield from (text for text in texts(path) if re.search(r"\s", text))  # a word alone is a key or a name
    if path.parent.name == "cli":
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield ast.get_docstring(node) or ""


SUFFIXES = {".py", ".csv", ".sh", ".html"}


@cache
def product() -> tuple[str, ...]:
    """Return the files of the product, by their paths."""
    paths = [ROOT / "app.py", *(ROOT / "pages").glob("*.py"), *(ROOT / "planner").rglob("*")]
    return tuple(sorted(str(path.relative_to(ROOT)) for path in paths if path.suffix in SUFFIXES))


def test_messages_use_plain_words() -> None:
    found = [
        f"{path}: {odd} in {' '.join(text.split())[:120]!r}"
        for path in product()
        for text in shown(ROOT / path)
        for odd in odd_words(" ".join(text.split()))
    ]
    assert not found, "\n".join(found)


def test_the_glossary_and_the_list_of_words_agree() -> None:
    """Each phrase that the glossary rejects is on the list, or is known to be right elsewhere."""
    rejected = []
    for line in GLOSSARY.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 3 and cells[2] not in {"", "Not"}:
            rejected += [one.strip() for one in re.sub(r"\(.*?\)|, (?:where|except) .*", "", cells[2]).split(",")]
    assert len(rejected) > 30
    assert [one for one in rejected if one not in OF_MANY_MEANINGS and not odd_words(one)] == []
    assert set(rejected) >= OF_MANY_MEANINGS


@pytest.mark.parametrize(
    "text",
    [
        "This is no JSON.",
        "Give a number.",
        "nobody serves it",
        "Made anew",
        "it comes to more steps",
        "as told by the broker",
        "clients are cut off",
        "The checksum does not fit.",
        "1 moves",
    ],
)
def test_the_list_finds(text: str) -> None:
    assert odd_words(text)


@pytest.mark.parametrize(
    "text",
    [
        "It is no longer shed.",
        "There is no gap.",
        "is no more than 5 %",
        "an unload storm",
        "It fits.",
        "Give workers more memory.",
    ],
)
def test_the_list_leaves_good_words_alone(text: str) -> None:
    assert not odd_words(text)


def test_sentences_are_counted_without_code_and_tables() -> None:
    page = "# Title\n\nOne two. Three `a b c` five:\n\n    code here\n\n| a | b |\n\n- Six.\n- Seven\n  eight nine.\n"
    assert [words(one) for one in sentences(page)] == [2, 3, 1, 3]
