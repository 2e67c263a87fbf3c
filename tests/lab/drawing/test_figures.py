import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretune_lab.drawing.figures import (
    PALETTE,
    REFERENCE_COLOUR,
    PlotLine,
    draw_critical_difference,
    draw_curves,
    save_figure,
    spread_apart,
)
from tests.refusals import refuses


def curves(n):
    return [PlotLine(f"m{i}", np.linspace(1.0, 0.1 * (i + 1), 20)) for i in range(n)]


def test_each_curve_is_drawn_and_labelled_in_its_colour():
    band = PlotLine("banded", np.ones(20), np.full(20, 0.5), np.full(20, 1.5))
    exact = PlotLine("exact", np.linspace(1.0, 0.3, 20), reference=True)
    figure = draw_curves([*curves(2), band, exact], title="A title", ylabel="loss")
    axes = figure.axes[0]
    assert [line.get_color() for line in axes.get_lines()] == [*PALETTE[:3], REFERENCE_COLOUR]
    assert [text.get_text() for text in axes.texts] == ["m0", "m1", "banded", "exact"]
    assert len(axes.collections) == 1
    assert (axes.get_title(loc="left"), axes.get_ylabel(), axes.get_xlabel()) == (
        "A title",
        "loss",
        "trials",
    )


def test_more_curves_than_colours_differ_in_their_dashes():
    lines = draw_curves(curves(10), title="", ylabel="").axes[0].get_lines()
    looks = {(line.get_color(), str(line.get_linestyle())) for line in lines}
    assert len(looks) == 10


def test_text_is_large_enough_to_read():
    figure = draw_curves(curves(3), title="title", ylabel="loss", log=True)
    axes = figure.axes[0]
    texts = [*axes.texts, axes.yaxis.label, *axes.get_xticklabels(), *axes.get_yticklabels()]
    assert min(text.get_fontsize() for text in texts) >= 9


def test_a_curve_that_reaches_zero_can_be_drawn_on_a_log_axis(tmp_path):
    figure = draw_curves(
        [PlotLine("found", np.array([1.0, 0.1, 0.0]))], title="", ylabel="", log=True
    )
    png, _ = save_figure(figure, tmp_path, "zero")
    assert png.stat().st_size > 0


def test_critical_difference_places_methods_by_rank():
    figure = draw_critical_difference(
        {"worst": 3.0, "best": 1.2, "middle": 1.8}, [("best", "middle")], title="Ranks"
    )
    axes = figure.axes[0]
    labels = [text.get_text() for text in axes.texts]
    assert labels == ["1", "2", "3", "best  1.20", "middle  1.80", "3.00  worst"]
    bar = next(line for line in axes.get_lines() if line.get_linewidth() == 4)
    assert bar.get_xdata()[0] == pytest.approx(1.2, abs=0.05)
    assert bar.get_xdata()[1] == pytest.approx(1.8, abs=0.05)


def test_critical_difference_shows_the_ranks_that_occur():
    figure = draw_critical_difference({"best": 9.8, "worst": 12.1}, [], title="Ranks")
    labels = [text.get_text() for text in figure.axes[0].texts]
    assert labels == ["9", "10", "11", "12", "13", "best  9.80", "12.10  worst"]


def test_figures_are_saved_as_png_and_svg_and_reproducibly(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        paths = save_figure(draw_curves(curves(2), title="t", ylabel="y"), tmp_path / folder, "f")
        assert [path.name for path in paths] == ["f.png", "f.svg"]
    for name in ("f.png", "f.svg"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with refuses("missing-extra", field="bench"):
        draw_curves(curves(1), title="", ylabel="")


def test_labels_that_do_not_touch_stay():
    np.testing.assert_allclose(spread_apart(np.array([0.9, 0.1, 0.5]), 0.1), [0.9, 0.1, 0.5])


def test_labels_in_one_place_spread_around_it():
    np.testing.assert_allclose(spread_apart(np.array([0.5, 0.5, 0.5]), 0.1), [0.4, 0.5, 0.6])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_labels_end_up_apart_in_order_and_inside(heights):
    moved = spread_apart(np.array(heights), 0.1)
    order = np.argsort(heights, kind="stable")
    assert (np.diff(moved[order]) >= 0.1 - 1e-9).all()
    assert moved.min() >= -1e-9
    assert moved.max() <= 1 + 1e-9


def test_curves_without_positive_values_keep_a_plain_axis():
    figure = draw_curves([PlotLine("zero", np.zeros(3))], title="t", ylabel="y", log=True)
    assert figure.axes[0].get_yscale() == "linear"
