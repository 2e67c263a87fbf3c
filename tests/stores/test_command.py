"""What `foretune import` hands over to the importers."""

from click.testing import CliRunner

from foretune.cli.import_and_show import import_command
from foretune.experience import Experience


def test_names_to_ignore_are_a_list(tmp_path):
    path, out = tmp_path / "runs.csv", tmp_path / "out.parquet"
    path.write_text('t,x,"a,b",note,y\na,1,2,hello,1\na,2,4,there,2\n')
    command = ["table", str(path), "--task", "t", "--value", "y:min", "-o", str(out)]
    found = CliRunner().invoke(import_command, [*command, "--ignore", '"a,b",note'])
    assert found.exit_code == 0
    assert Experience.open(out).space.names == ("x",)


def test_experiments_are_named_as_studies_are(tmp_path):
    command = ["ray", str(tmp_path), "--value", "y:min", "--study", "a"]
    found = CliRunner().invoke(import_command, [*command, "-o", str(tmp_path / "out.parquet")])
    assert "--study belongs to optuna, mlflow" in str(found.exception)
