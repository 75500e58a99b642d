"""Best plans of samples that several tests look at from different sides: each is searched for once by a worker."""

from functools import cache

from planner.cluster.snapshot import Snapshot
from planner.optimize.answer import best_plan
from planner.optimize.plan import Plan
from planner.optimize.question import Question
from planner.workspace.samples import load_sample, samples

PLANS_OF_STORY = "best plans of the first sample"
"""Group of the tests that ask here about the first sample."""
STORY = "story.zip"


@cache
def sample(file: str) -> Snapshot:
    """Return a sample by the name of its file."""
    return load_sample(next(one for one in samples() if one.file == file))


_PLANS: dict[str, Plan] = {}


def plan_of(file: str, question: Question) -> Plan:
    """Return the best plan of a sample."""
    asked = f"{file} {question!r}"
    if asked not in _PLANS:
        _PLANS[asked] = best_plan(sample(file), question)
    return _PLANS[asked]
