"""No test reads or writes the user's cache."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "foretune.integrations.optuna.cache.cache_folder", lambda: tmp_path / "cache"
    )
