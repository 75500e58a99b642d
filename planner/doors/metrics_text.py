"""Metrics of the broker itself, written as Prometheus' text, which raw captures hold."""

from collections.abc import Iterable, Mapping


def as_text(metrics: Iterable[tuple[str, Mapping[str, str], float]]) -> str:
    """Return metrics as text, a line each."""
    return "".join(f"{name}{_labels(labels)} {value!r}\n" for name, labels, value in metrics)


def _labels(labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{name}="{_plain(value)}"' for name, value in labels.items())
    return f"{{{inside}}}" if inside else ""


def _plain(value: str) -> str:
    """Return a value without what would end it; no label that is read has such signs."""
    return "".join(sign for sign in value if sign not in '"\\}\n')
