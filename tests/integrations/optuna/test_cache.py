"""Tables and priors that are kept on disk."""

from pathlib import Path

import pytest

from foretune.integrations.optuna.cache import remembered


def made_of(made: list[str]) -> str | None:
    """The one thing there is to remember; `made` gets it as often as it is made."""

    def make() -> str:
        made.append("learnt")
        return made[-1]

    return remembered(
        "key", load=Path.read_text, make=make, save=lambda what, path: path.write_text(what)
    )


def test_a_cache_that_may_only_be_read_is_used(monkeypatch: pytest.MonkeyPatch):
    made: list[str] = []
    made_of(made)

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "touch", refuse)
    assert made_of(made) == "learnt"
    assert len(made) == 1
