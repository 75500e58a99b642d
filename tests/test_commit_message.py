"""The hook for commit messages accepts what CONTRIBUTING.md asks for, and explains what it rejects."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.check_commit_message import main, problems

ROOT = Path(__file__).parent.parent
BODY = "\n\nScripts failed on bundles that had moved.\n"
SUBJECT = "Skip bundles that have moved since the capture"


@pytest.mark.parametrize(
    "message",
    [
        SUBJECT + BODY,
        "Shed no bundle of an excluded namespace" + BODY,
        "A" * 72 + BODY,
        f"\n# A comment of Git.\n{SUBJECT}{BODY}# Changes to be committed:\n",
        f"{SUBJECT}{BODY}# ------------------------ >8 ------------------------\ndiff --git a/b b/b\n",
        "Merge branch 'e-3'",
        'Revert "Skip bundles that have moved"\n\nThis reverts commit 1234567.\n',
        f"fixup! {SUBJECT}",
    ],
)
def test_good_messages_pass(message: str) -> None:
    assert problems(message) == []


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ("", "The message is empty. Write a subject and a body."),
        ("# Only a comment.\n", "The message is empty. Write a subject and a body."),
        ("A" * 73 + BODY, "The subject has 73 characters. Use at most 72."),
        ("skip bundles" + BODY, "The subject does not start with a capital letter."),
        (f"{SUBJECT}.{BODY}", "The subject ends with a full stop. Remove it."),
        ("Added a page" + BODY, '"Added" is not imperative. Write "Add", not "Added" or "Adding".'),
        ("Adding a page" + BODY, '"Adding" is not imperative. Write "Add", not "Added" or "Adding".'),
        (SUBJECT, "There is no body. Say why, after an empty line."),
        (f"{SUBJECT}\n\n# Only a comment.\n", "There is no body. Say why, after an empty line."),
        (f"{SUBJECT}\nmore\n\nBecause.\n", "The second line is not empty."),
    ],
)
def test_bad_messages_are_explained(message: str, problem: str) -> None:
    assert problems(message) == [problem]


def test_several_problems_are_named_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "message"
    file.write_text("added a very long subject that says far too much about everything in this commit.\n")
    assert main(str(file)) == 1
    assert capsys.readouterr().err.splitlines() == [
        "The subject has 81 characters. Use at most 72.",
        "The subject does not start with a capital letter.",
        "The subject ends with a full stop. Remove it.",
        "There is no body. Say why, after an empty line.",
    ]


def test_the_hook_runs_the_tool(tmp_path: Path) -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert "entry: python tools/check_commit_message.py" in hooks
    assert "stages: [commit-msg]" in hooks
    file = tmp_path / "message"
    for text, status in ((SUBJECT + BODY, 0), (SUBJECT, 1)):
        file.write_text(text)
        done = subprocess.run([sys.executable, "tools/check_commit_message.py", str(file)], cwd=ROOT, check=False)
        assert done.returncode == status
