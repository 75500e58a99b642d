"""Positions of names while bundles are split and made anew."""

import pickle
from random import Random

import numpy as np
import pytest

from planner.cluster.positions import Positions, positions_of
from planner.simulate.renumbering import Names, Renumbering


@pytest.mark.parametrize("seed", range(20))
def test_every_version_tells_its_own_positions(seed: int) -> None:
    drawn = Random(seed)  # noqa: S311 - a test
    names = tuple(f"n/{number}" for number in range(12))
    versions = [(names, Positions.of({name: at for at, name in enumerate(names)}))]
    for step in range(15):
        before, known = versions[-1]
        rows = sorted(drawn.sample(range(len(before)), drawn.randint(1, min(4, len(before)))))
        if drawn.random() < 0.6:
            rows = list(range(rows[0], min(rows[0] + len(rows), len(before))))
        others = [at for at in range(len(before)) if at not in rows]
        place, count = sum(at < rows[0] for at in others), drawn.randint(1, 3)
        parent = np.array(others[:place] + [rows[0]] * count + others[place:], dtype=np.int64)
        new = np.zeros(len(parent), dtype=np.bool_)
        new[place : place + count] = True
        change = Renumbering(parent, new, np.array(rows, dtype=np.int64))
        old = [f"n/{number}" for number in range(12) if f"n/{number}" not in before]
        fresh = [old.pop() if old and drawn.random() < 0.5 else f"new/{step}/{at}" for at in range(count)]
        renamed = Names(before)
        assert Names.kept(renamed) == before
        renamed.follow(change, fresh)
        expected = [before[at] for at in parent.tolist()]
        expected[place : place + count] = fresh
        assert renamed == expected
        after = Names.kept(renamed)
        assert Names.kept(renamed) is after
        values = np.arange(3.0 * len(before)).reshape(3, len(before))
        np.testing.assert_array_equal(change.follow(values), values.take(parent, axis=-1))
        np.testing.assert_array_equal(change.follow(values[0]), values[0][parent])
        versions.append((after, known.renumbered(fresh, parent, change.made.tolist())))
    every = {name for names, _ in versions for name in names}
    for names, known in versions:
        for found in (known, pickle.loads(pickle.dumps(known))):  # noqa: S301 - its own
            assert dict(found) == {name: at for at, name in enumerate(names)}
            assert {name for name in every if name in found} == set(names)
            assert all(found.get(name, -1) == -1 for name in every - set(names))
    with pytest.raises(KeyError):
        versions[-1][1]["nobody"]
    for names, known in versions:
        asked = sorted(every | {"nobody"})
        expected = [names.index(name) if name in names else -1 for name in asked]
        assert positions_of(asked, known).tolist() == positions_of(asked, dict(known)).tolist() == expected
