"""A cache of priors, so that a method never learns the same twice."""

import hashlib
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec

from foretune._base.cache import forget, load_or_make
from foretune._base.progress import (
    SILENT,
    LoggedProgress,
    Progress,
    TerminalProgress,
    report_every_second,
)
from foretune.errors import explain_missing_extras
from foretune.experience import Experience
from foretune.experience.fingerprints import fingerprint_of_lessons
from foretune.methods.contracts import Learner, Prior
from foretune.search.early_opening import EarlyPrior
from foretune.search.method_entry import Method
from foretune.search.plugins import comes_with_foretune
from foretune.search.prior_ancestry import ANCESTRY, learnt_on_top
from foretune.search.registry import METHODS, SHIPPED

PRIORS = "priors"
"""The folder of the user's cache for priors."""
PARTS = "parts"
"""The folder for the parts of priors, which are learnt one after the other."""


def default_progress() -> Progress:
    """Return a bar on a terminal, or lines in the log elsewhere."""
    return TerminalProgress() if sys.stderr.isatty() else LoggedProgress()


def prior_of(
    method: Method,
    experience: Experience | None,
    *,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Prior:
    """Return the prior. With many past tasks only its opening is learnt at once."""
    if experience is None or not method.transfers:
        return learnt_prior(method, experience, seed=seed, progress=progress)
    learn = partial(learnt_prior, method, experience, seed=seed, progress=progress)
    return _open_early(method, experience, learn, seed=seed, progress=progress)


def _open_early(
    method: Method,
    experience: Experience,
    learn: Callable[[], Prior],
    *,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Prior:
    """Return what `learn` returns or, with many past tasks, a prior that calls it later."""
    method.check(experience, seed=seed)
    with explain_missing_extras(f"the method '{method.name}'"):
        learner = method.learner()
    with report_every_second(progress, "choosing what to try first", mostly_quick=True):
        first = learner.early_opening(experience, seed=seed)
    return learn() if first is None else EarlyPrior(first, learn)


def learnt_prior(
    method: Method,
    experience: Experience | None,
    *,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Prior:
    """Learn from the experience, or load the same prior from the user's cache."""
    if experience is None or not method.transfers:
        return method.learn(experience, seed=seed, progress=progress)
    if not _is_kept(method):
        return method.learn(experience, seed=seed, progress=progress)
    said = f"{taught_by(experience, seed)} {learner_here(method)}"
    return load_or_make(
        PRIORS,
        _key(said),
        load=method.load,
        make=partial(_learnt_in_parts, method, experience, seed=seed, progress=progress),
        save=lambda prior, path: prior.save(path),
    )


def _learnt_in_parts(
    method: Method, experience: Experience, *, seed: int, progress: Progress
) -> Prior:
    """Learn, and keep finished parts in case the work is stopped."""

    def keep(name: str, part: Learner, known: Experience, read: Experience) -> Prior:
        return load_or_make(
            PARTS,
            _key(f"{taught_by(read, seed)} {method.name} {name}"),
            load=part.load,
            make=partial(learnt_on_top, name, part, known, seed=seed, progress=progress),
            save=lambda prior, path: prior.save(path),
        )

    return method.learn(experience, seed=seed, progress=progress, keep=keep)


def _key(said: str) -> str:
    return hashlib.sha256(said.encode()).hexdigest()[:40]


def _is_kept(method: Method) -> bool:
    """Return whether the cache keeps what the method has learnt.

    It does so only for methods that come with Foretune. The code of other methods may change
    without a change of name or release.
    """
    ships = method.name in SHIPPED or comes_with_foretune(method.name)
    return ships and METHODS[method.name] is method


def learner_here(method: Method, *, has_jax: bool | None = None) -> str:
    """Return the method's name, and whether JAX is missing: `auto` then has other experts."""
    if has_jax is None:
        has_jax = find_spec("jax") is not None
    return method.name if has_jax else f"{method.name} without JAX"


def taught_by(experience: Experience, seed: int, *, release: str = "") -> str:
    """Return a fingerprint (hex) of what a method learns from: experience, seed and release."""
    release = release or version("foretune")
    said = f"{fingerprint_of_lessons(experience)} {seed} {release}"
    return hashlib.sha256(said.encode()).hexdigest()


def forget_priors() -> None:
    """Delete all cached priors, because they were learnt from what must be forgotten."""
    for kind in (PRIORS, PARTS, ANCESTRY):
        forget(kind)
