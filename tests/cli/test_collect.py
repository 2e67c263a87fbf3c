import pytest
from click.testing import CliRunner

from foretune.automl.space_names import SHIPPED_SPACES
from foretune.automl.spaces import SPACES
from foretune.cli import foretune
from foretune.experience import Experience
from foretune_lab.cli.collect import LineProgress
from tests.automl.samples import mixed_frame


def run(*arguments):
    return CliRunner().invoke(foretune, arguments)


@pytest.fixture
def tables(tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    mixed_frame().drop(columns="class").to_csv(folder / "t.csv", index=False)
    return folder


def test_a_folder_becomes_experience(tables, tmp_path):
    out = tmp_path / "own.parquet"
    space = ("--space", "pipeline-regression", "--only", "knn, elastic_net")
    ended = run(
        "collect", *space, "--datasets", str(tables), "--target", "amount", "--evaluations", "3",
        "--folds", "2", "--jobs", "1", "-o", str(out),
    )  # fmt: skip
    assert ended.exit_code == 0, ended.output
    assert f"Saved {out}" in ended.output
    made = Experience.open(out)
    assert len(made) == 3
    assert [metric.name for metric in made.metrics] == ["r2", "rmse"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--time-limit", "20"], "positive number with a unit (s, m, h)"),
        (["--memory", "0GB"], "positive number with a unit (MB, GB)"),
        (["-o", "cash.csv"], "must be a .parquet file"),
        (["--only", "svmm"], "did you mean 'svm'"),
        (["--metrics", "auc"], "one of r2, rmse"),
        (["--datasets", "nowhere"], "is no folder"),
    ],
)
def test_mistakes_are_one_sentence(tables, tmp_path, options, said):
    given = {"--datasets": str(tables), "-o": str(tmp_path / "own.parquet")}
    given |= {"--space": "pipeline-regression"}
    given |= dict(zip(options[::2], options[1::2], strict=True))
    ended = run("collect", *(word for pair in given.items() for word in pair))
    assert ended.exit_code != 0
    assert said in ended.output + str(ended.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["tables"]


def test_spaces_are_listed_and_described():
    listed = run("spaces").output
    for name, space in SPACES.items():
        assert name in listed
        assert ", ".join(space.algorithms()) in listed
    described = run("spaces", "cash", "--only", "knn, rf").output
    assert "algorithm:knn:n_neighbors" in described
    assert "svc" not in described
    nameless = run("spaces", "--only", "knn")
    assert "foretune spaces NAME --only knn" in str(nameless.exception)
    assert not nameless.output


def test_names_written_out_for_the_help_are_those_there_are():
    assert tuple(SPACES) == SHIPPED_SPACES


def test_a_log_gets_a_line_a_minute_with_the_time_left(capsys):
    clock = [0.0]
    progress = LineProgress(lambda: clock[0])
    progress.start("collecting", 100)
    for second in (1.0, 61.0, 62.0):
        clock[0] = second
        progress.step(5, note="iris")
    said = capsys.readouterr().err.splitlines()
    assert said == ["collecting: 100 to do", "collecting: 10 of 100, 0:09:09 left (iris)"]
