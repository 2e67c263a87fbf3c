"""`foretune bench run --budget` as one types it."""

from pathlib import Path

from tests.lab.bench.tables import table_with_curves


def test_the_commands_run_and_report(foretune, tmp_path: Path) -> None:
    given, out = tmp_path / "past.parquet", tmp_path / "o.parquet"
    table_with_curves([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]]).save(given)
    words = ["bench", "run", "--experience", given, "--out", out, "--seeds", 1]
    for change, named in (
        (["--methods", "random", "--eta", 2], "no --budget"),
        (["--methods", "random", "--cost", "steps"], "--cost"),
        (["--methods", "random", "--budget", 2, "--trials", 5], "leave one out"),
        (["--methods", "random", "--budget", 2, "--charge-thinking"], "thinking"),
        (["--methods", "asha+random", "--budget", 2], "METHOD+POLICY"),
    ):
        code, _, error = foretune(*words, *change)
        assert (code, named in error) == (2, True), error
    options = ["--budget", 3, "--methods", "random,asha", "--cost", "seconds", "--workers", 2]
    code, shown, error = foretune(*words, *options)
    assert (code, shown.split()[0]) == (0, "4"), error
    assert foretune("bench", "report", out, "--at", "0.5,3")[0] == 0
    found = (tmp_path / "o.report" / "past-regret.csv").read_text().splitlines()
    assert found[0] == "method,n=0.5,n=3,area,seconds"
