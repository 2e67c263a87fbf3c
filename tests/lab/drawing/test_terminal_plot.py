import numpy as np

from foretune_lab.drawing.terminal_plot import terminal_plot


def canvas(plot, height):
    return [line.split("│", 1)[1] for line in plot.splitlines()[:height]]


def test_a_falling_curve_goes_from_the_top_left_to_the_bottom_right():
    plot = terminal_plot({"loss": np.linspace(1.0, 0.0, 30)}, width=40, height=8)
    rows = canvas(plot, 8)
    assert {len(row) for row in rows} == {28}
    starts = [len(row) - len(row.lstrip()) for row in rows]
    assert starts == sorted(starts)
    assert starts[0] == 0
    assert rows[-1].endswith("a")
    assert "a  loss" in plot


def test_axes_carry_the_limits():
    lines = terminal_plot(
        {"loss": np.array([100.0, 1.0])}, width=40, height=5, log=True
    ).splitlines()
    assert [lines[row].split("│")[0].strip() for row in range(5)] == ["100", "", "10", "", "1"]
    assert lines[6].split() == ["1", "2"]


def test_braille_dots_by_hand():
    # One row of characters is four rows of dots: a constant curve lies in the middle.
    plot = terminal_plot({"flat": np.array([1.0, 1.0])}, width=20, height=1)
    assert canvas(plot, 1)[0] == "⠤" * 7 + "a"


def test_a_short_curve_ends_early():
    plot = terminal_plot({"long": np.ones(10), "short": np.zeros(5)}, width=60, height=6)
    bottom = canvas(plot, 6)[-1]
    assert bottom.rstrip().endswith("b")
    assert bottom.index("b") == round(4 / 9 * 47)


def test_ends_in_the_same_place_stay_readable():
    plot = terminal_plot({"one": np.array([1.0, 0.0]), "two": np.array([2.0, 0.0])}, 40, 4)
    assert canvas(plot, 4)[-1].endswith("ba")


def test_zeros_are_left_out_of_a_log_plot():
    plot = terminal_plot({"found": np.array([1.0, 0.1, 0.0])}, width=40, height=4, log=True)
    assert plot.splitlines()[3].split("│")[0].strip() == "0.1"


def test_nothing_finite_is_said_so():
    assert "nothing to draw" in terminal_plot({"nan": np.full(3, np.nan)})
