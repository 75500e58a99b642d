"""Tasks of a contributor, in the environment nox is started from: `nox -s check rules`; `nox -l` lists them."""

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["check", "rules"]
nox.options.error_on_external_run = False

_PARALLEL = ("-n", "auto", "--dist", "loadgroup")
_QUICK = "not oracle and not cluster and not slow"


def _pytest(session: nox.Session, *arguments: str) -> None:
    session.run("python", "-m", "pytest", *arguments, *session.posargs)


@nox.session
def check(session: nox.Session) -> None:
    """Style, format and types."""
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session
def rules(session: nox.Session) -> None:
    """What decides like Pulsar, against every recording."""
    _pytest(session, "tests/rules", *_PARALLEL)


@nox.session
def data(session: nox.Session) -> None:
    """Formats, captures, histories, shadow mode and replays, without Spark."""
    _pytest(session, "tests/data", *_PARALLEL, "-m", f"not spark and {_QUICK}")


@nox.session
def pages(session: nox.Session) -> None:
    """Scenarios, explanations, figures and pages, without a browser."""
    _pytest(session, "tests/app", *_PARALLEL)


@nox.session
def browser(session: nox.Session) -> None:
    """What only a browser shows."""
    _pytest(session, "tests/e2e")


@nox.session
def spark(session: nox.Session) -> None:
    """What runs on Spark, real masters and servers among it."""
    _pytest(session, "tests/data", "-m", "spark or slow")


@nox.session
def oracle(session: nox.Session) -> None:
    """Fresh random cases, asked of Pulsar's own classes (needs a JDK 17 and Maven)."""
    _pytest(session, "tests/oracle", "-m", "oracle")


@nox.session
def cluster(session: nox.Session) -> None:
    """Real Pulsar clusters on loopback (needs a JDK 17, Maven and the extra `cluster`)."""
    _pytest(session, "tests/cluster", "-m", "cluster and not slow")


@nox.session
def mutants(session: nox.Session) -> None:
    """Mutants, 85 % to be killed (an hour or two; extra `mutants`): `nox -s mutants -- --sample 50`."""
    session.run("python", "tools/mutants.py", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Benchmarks, each with ratios side by side: `nox -s bench -- simulation`."""
    for name in session.posargs or ("simulation", "formats", "extensible"):
        session.run("python", f"benchmarks/{name}.py")
