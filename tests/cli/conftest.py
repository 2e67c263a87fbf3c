"""What all tests of the command line share."""

import pytest

from foretune.cli import main


@pytest.fixture(autouse=True)
def _small_map(monkeypatch) -> None:
    """Draw few configurations in reports: their map takes longer than the trials of a test."""
    monkeypatch.setattr("foretune.run.study_story.MAPPED", 20)


@pytest.fixture
def foretune(monkeypatch, capsys):
    """Run a command; give its exit code, standard output and standard error."""

    # What is printed must not depend on how busy the machine is.
    monkeypatch.setattr("foretune._base.progress.SLOW_SECONDS", 3600.0)

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["foretune", *map(str, words)])
        try:
            main()
            code = 0
        except SystemExit as done:
            code = int(done.code or 0)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run
