from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from foretune_lab.bench.figures import figures_of_suite
from foretune_lab.bench.report import report
from foretune_lab.bench.results import curves_of, read, save
from tests.lab.bench.tables import facts, results
from tests.refusals import refuses


@pytest.fixture
def file(tmp_path):
    """On 6 tasks `gp` halves the loss of `random`, whose first trial is at 0.8."""
    runs = {}
    for task in range(6):
        for seed in range(2):
            start = 0.8 - 0.01 * task
            runs[(f"t{task}", "random", seed)] = [start, start / 2, start / 2]
            runs[(f"t{task}", "gp", seed)] = [start / 2, start / 4, 0.0]
    path = tmp_path / "results.parquet"
    pools = {f"t{task}": replace(facts(), random=np.array([0.8, 0.4, 0.2])) for task in range(6)}
    save(results(runs, pools), path)
    return path


report_tables = partial(report, figures=False)


def table_named(made, name):
    return next(table for table in made.tables if table.name == name)


def test_numbers_of_the_tables(file, tmp_path):
    made = report_tables([file], tmp_path / "report", at=[1, 3, 99])
    assert made.figures == ()
    adtm = table_named(made, "toy-adtm")
    assert adtm.columns == ("method", "n=1", "n=3")
    assert [row[0] for row in adtm.rows] == ["random", "gp", "random (exact)"]
    assert adtm.rows[0][1] == pytest.approx(0.775)
    assert adtm.rows[1][1:] == (pytest.approx(0.3875), 0.0)
    assert adtm.rows[2][1:] == (pytest.approx(0.8), pytest.approx(0.2))
    gains = dict(
        zip(("random", "gp"), table_named(made, "toy-improvement").rows[0][1:], strict=True)
    )
    assert gains["random"] == pytest.approx((0 + 0 - 1) / 3)
    assert gains["gp"] == pytest.approx((0.5 + 0.5 + 1) / 3)
    overview = {row[0]: row[1] for row in table_named(made, "improvement").rows}
    assert overview["gp"].endswith("(1.0)")
    assert overview["random (exact)"].startswith("0.00")
    ranks = table_named(made, "toy-rank")
    assert ranks.rows[1] == ("gp", "1.00 ± 0.00", "1.00 ± 0.00")
    assert table_named(made, "toy-red").rows[1][1] == "-50.00% ± 0.00"
    assert table_named(made, "toy-regret").rows[1][2] == "0.000 (0.000, 0.000)"
    assert table_named(made, "toy-seconds").rows[0] == ("random", 0.5, 2.0)
    assert table_named(made, "toy-significance").rows[0][:2] == ("1", "none")


def test_the_text_shows_plot_and_tables(file, tmp_path):
    text = report_tables([file], tmp_path / "report", at=[3]).text
    assert "toy: average distance to the minimum over trials" in text
    assert "└──" in text
    assert "Improvement over exact random search" in text


def test_the_order_of_methods_is_the_callers_or_the_registrys(file, tmp_path):
    made = report_tables(
        [file], tmp_path / "report", methods=["gp", "random"], baseline="gp", at=[1]
    )
    assert [row[0] for row in table_named(made, "toy-rank").rows] == ["gp", "random"]
    assert table_named(made, "toy-red").rows[1][1] == "+50.00% ± 0.00"


def test_a_report_of_several_suites_writes_tables_and_figures(file, tmp_path):
    other = tmp_path / "other.parquet"
    runs = {("t9", "random", 0): [0.5, 0.5], ("t9", "gp", 0): [0.6, 0.6]}
    save(results(runs, {"t9": facts(trials=2)}, suite="other"), other)
    out = tmp_path / "report"
    made = report([file, other], out, at=[2])
    ranks = {row[0]: row[1] for row in table_named(made, "overall-rank").rows}
    assert ranks["gp"].startswith("1.14 ±")
    assert table_named(made, "improvement").columns == ("method", "toy", "other", "overall")
    names = {path.name for path in out.iterdir()}
    stems = ["toy-adtm", "toy-rank", "toy-regret", "toy-critical-difference-2", "other-adtm"]
    stems += ["overall-rank", "overall-critical-difference-2"]
    assert {f"{stem}.{kind}" for stem in stems for kind in ("png", "svg")} <= names
    assert {path.name for path in made.figures} <= names
    page = made.page.read_text(encoding="utf-8")
    for table in made.tables:
        assert f"### {table.title}" in page
        assert pd.read_csv(out / f"{table.name}.csv").shape == (
            len(table.rows),
            len(table.columns),
        )
    assert "![toy-adtm](toy-adtm.png)" in page


def test_a_report_says_how_the_runs_were_made(file, tmp_path):
    made = report_tables([file], tmp_path / "report", at=[1])
    [row] = table_named(made, "runs").rows
    assert row == ("toy", "6", 2, 3, "leave-one-out", "none", "error")
    sampled = replace(read(file), held_out=40)
    save(replace(sampled, settings=replace(sampled.settings, start="random:2")), file)
    [row] = table_named(report_tables([file], tmp_path / "again", at=[1]), "runs").rows
    assert row == ("toy", "6 of 40", 2, 3, "leave-one-out", "random:2", "error")


def test_a_report_of_several_objectives_is_about_hypervolume(tmp_path):
    whole = results({("t1", "random", 0): [1.0, 0.0], ("t1", "gp", 0): [0.0, 1.0]})
    front = np.array([[0.0, 1.0], [1.0, 0.0]])
    pool = replace(whole.pools["t1"], front=front, reference=np.array([2.0, 2.0]))
    rows = whole.rows.assign(value_x=whole.rows["value"], value_y=[0.0, 1.0, 1.0, 0.0])
    settings = replace(whole.settings, objectives=("x", "y"), directions=("min", "min"))
    path = tmp_path / "both.parquet"
    save(replace(whole, settings=settings, rows=rows, pools={"t1": pool}), path)
    made = report_tables([path], tmp_path / "report", at=[1, 2])
    shares = table_named(made, "toy-hypervolume").rows
    assert shares[0][1:] == (pytest.approx(1 / 3), 0.0)
    assert not [table for table in made.tables if table.name.endswith(("adtm", "improvement"))]


def test_runs_that_were_left_out_are_counted(tmp_path):
    path = tmp_path / "results.parquet"
    save(results({("t1", "a", 0): [1.0], ("t1", "a", 1): [1.0], ("t1", "b", 0): [0.0]}), path)
    assert (
        "Left out of 'toy': 1 run. Methods are compared on"
        in report_tables([path], tmp_path / "report").text
    )


@pytest.mark.parametrize(
    ("wish", "rule", "value"),
    [
        ({"baseline": "smac"}, "unknown-baseline", "smac"),
        ({"at": [0]}, "report-trials", 0),
        ({"methods": ["smac"]}, "method-without-runs", "smac"),
    ],
)
def test_wishes_that_cannot_be_met_write_nothing(file, tmp_path, wish, rule, value):
    with refuses(rule, value=value):
        report_tables([file], tmp_path / "report", **wish)
    assert not (tmp_path / "report").exists()


def test_one_sample_says_nothing_about_its_spread(tmp_path):
    path = tmp_path / "results.parquet"
    save(results({("t1", "random", 0): [1.0], ("t1", "gp", 0): [0.5]}), path)
    made = report_tables([path], tmp_path / "report", at=[1])
    assert table_named(made, "toy-rank").rows[1] == ("gp", "1.00 ± -")
    assert table_named(made, "toy-red").rows[1] == ("gp", "-50.00% ± -")


def test_the_spread_of_a_rank_is_not_cut_where_ranks_end(tmp_path):
    path = tmp_path / "results.parquet"
    runs = {("t1", "random", 0): [1.0], ("t1", "gp", 0): [0.5]}
    save(results(runs | {("t2", "random", 0): [0.5], ("t2", "gp", 0): [1.0]}), path)
    made = report_tables([path], tmp_path / "report", at=[1])
    # Ranks 1 and 2: t(0.975, 1) = 12.71 times 0.5.
    assert table_named(made, "toy-rank").rows[1] == ("gp", "1.50 ± 6.35")


def test_fronts_are_drawn_in_the_metrics_own_values():
    whole = results({("t1", "gp", 0): [-0.9, -0.5, -0.4]})
    pool = replace(whole.pools["t1"], front=np.array([[-0.9, 2.0], [-0.5, 1.0]]))
    pool = replace(pool, reference=np.array([0.0, 3.0]))
    rows = whole.rows.assign(value_accuracy=whole.rows["value"], value_cost=[2.0, 1.0, 2.0])
    settings = replace(whole.settings, objectives=("accuracy", "cost"), directions=("max", "min"))
    both = replace(whole, settings=settings, rows=rows, pools={"t1": pool})
    figures = figures_of_suite(curves_of(both))
    assert "toy-hypervolume" in figures
    [axes] = figures["toy-fronts"].axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("accuracy", "cost")
    for line in axes.lines:
        assert line.get_xydata().tolist() == [[0.5, 1.0], [0.9, 2.0]]
