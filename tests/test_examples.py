"""The examples of `docs/examples.md` run as they stand, one after the other."""

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "examples.md"
_BLOCK = re.compile(r"^## (?P<title>.*?)$|^```python\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the blocks leave behind, and what they print, by the titles of their sections."""
    pytest.importorskip("optuna")
    said: dict[str, str] = {}
    names: dict[str, Any] = {"said": said}
    title = ""
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(tmp_path_factory.mktemp("examples"))
        patched.setattr("foretune._base.cache.cache_folder", lambda: Path("cache").resolve())
        for block in _BLOCK.finditer(PAGE.read_text("utf-8")):
            if block["title"] is not None:
                title = block["title"]
                continue
            lines: list[str] = []
            names["print"] = lambda *parts, to=lines: to.append(" ".join(map(str, parts)))
            exec(compile(block["code"], f"examples.md: {title}", "exec"), names)
            said[title] = "\n".join(lines)
    return names


def test_every_block_shows_something(session: dict[str, Any]) -> None:
    assert len(session["said"]) == 10
    assert all(session["said"].values())


def test_the_results_that_the_page_shows_are_true(session: dict[str, Any]) -> None:
    first_error = float(session["said"]["Start from past runs"].split()[-1])
    losses = [told.losses for told in session["optimizer_of_two"].front]
    assert first_error < 0.5  # of a random one, more than one
    assert session["said"]["Keep what was learnt"] == "True"
    assert session["said"]["Go on after a restart"] == "True"
    assert session["said"]["Several at a time, and trials that fail"] == "4 told, 1 pending"
    assert len(losses) > 1
    assert 0 < len(session["fitting"]) < len(session["former"])
    assert abs(session["study"].best_params["x"] - 2.0) < 0.5
