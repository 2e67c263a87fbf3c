import numpy as np
import pytest

from foretune.experience import Direction, Metric
from foretune_lab.drawing.figures import save_figure
from foretune_lab.drawing.fronts import Fronts, draw_fronts

pytest.importorskip("matplotlib")


def test_each_task_has_a_panel_with_the_possible_front_and_what_was_found(tmp_path):
    possible = np.array([[3.0, 1.0], [1.0, 3.0], [2.0, 2.0]])
    panels = [
        Fronts("one", possible, {"gp": possible[:1], "rf": possible[1:]}),
        Fronts("two", possible, {"gp": possible, "rf": possible}),
    ]
    figure = draw_fronts(panels, (Metric("error"), Metric("latency")), title="fronts")
    first, second = figure.axes
    assert [axis.get_title(loc="left") for axis in (first, second)] == ["one", "two"]
    labels = [line.get_label() for line in first.lines]
    assert labels == ["possible", "gp", "rf"]
    np.testing.assert_array_equal(first.lines[0].get_xdata(), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(first.lines[2].get_xdata(), [1.0, 2.0])
    png, svg = save_figure(figure, tmp_path, "fronts")
    assert png.stat().st_size > 1000
    assert "latency" in svg.read_text()


@pytest.mark.parametrize("up", list(Direction))
@pytest.mark.parametrize(("across", "held"), [(Direction.MIN, 0), (Direction.MAX, 1)])
def test_the_staircase_holds_what_the_better_point_gives(across, held, up):
    rising = across != up
    points = np.array([[1.0, 1.0], [2.0, 2.0]] if rising else [[1.0, 2.0], [2.0, 1.0]])
    figure = draw_fronts(
        [Fronts("one", points, {})], (Metric("x", across), Metric("y", up)), title="fronts"
    )
    stairs = figure.axes[0].lines[0]
    corners = stairs.get_path().vertices
    [corner] = [row for row in corners.tolist() if row not in points.tolist()]
    assert corner == [points[1 - held, 0], points[held, 1]]
