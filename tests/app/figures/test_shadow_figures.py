"""The score of shadow mode as a picture, and as a sentence."""

from planner.figures.shadow import shadow_score, shadow_text


def test_the_share_so_far_and_the_cycles_that_were_wrong() -> None:
    figure = shadow_score([4, 5, 6, 7], [2, 1, 0, 3], [2, 0, 0, 3], [True, False, True, True])
    share, wrong, predicted, unloaded = figure.data
    assert list(share.y) == [100.0, 50.0, 200 / 3, 75.0]
    assert (list(wrong.x), list(wrong.y)) == ([5], [50.0])
    assert (list(predicted.y), list(unloaded.y)) == ([2, 1, 0, 3], [2, 0, 0, 3])
    assert predicted.marker.color != unloaded.marker.color


def test_the_sentence() -> None:
    assert shadow_text([4, 5], [True, False]) == "1 of 2 cycles as predicted; mispredicted: 5."
    assert shadow_text([1], [True]) == "1 of 1 cycles as predicted."
    assert "mispredicted (last ten): 10, 11" in shadow_text(range(20), [False] * 20)


def test_nothing_yet() -> None:
    assert len(shadow_score([], [], [], []).data) == 4
