"""Several test processes share the cores: one numeric thread each, or they wait for each other."""

import os
import signal
import sys

import pytest
from hypothesis import settings

from foretune._base.threads import ONE_NUMERIC_THREAD
from tests.tiers import (  # noqa: F401  pytest finds these hooks here
    pytest_collection_modifyitems,
    pytest_ignore_collect,
    pytest_terminal_summary,
)

# Tests start hundreds of processes. Without compiled modules each would compile all of them again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Before any test imports NumPy or JAX, which read these when they start.
os.environ.update(ONE_NUMERIC_THREAD)
# The same examples at every run of CI, new ones at every run elsewhere; no example is timed, since
# a busy machine proves nothing.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
# Tests of Ctrl-C start programs that inherit this; whoever runs tests in the background ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)


@pytest.fixture(autouse=True)
def own_cache(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's cache; its folder is made when a test needs it."""
    monkeypatch.setattr(
        "foretune._base.cache.cache_folder", lambda: request.getfixturevalue("tmp_path") / "cache"
    )


@pytest.fixture
def trials_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials of `fit` run in the process of the test, without limits.

    For tests of what becomes of trials: a worker process imports for seconds before its first one.
    """
    from foretune.run.executor_choice import ExecutorChoice
    from tests.inline_site import InlineSite

    monkeypatch.setattr(ExecutorChoice, "pool", InlineSite.pool)
    # No worker is forked, so nothing needs to be loaded for one.
    monkeypatch.setattr("foretune.cli.fit._load_beside", lambda: None)
