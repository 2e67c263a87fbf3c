"""What a method has learnt from past tasks, kept so that it never learns the same twice."""

import hashlib
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec

from foretune.cache import forget, remembered
from foretune.contracts import Prior
from foretune.experience import Experience
from foretune.experience.fingerprints import fingerprint_of_lessons
from foretune.progress import SILENT, Progress
from foretune.search.definition import Method
from foretune.search.registry import METHODS, SHIPPED

PRIORS = "priors"
"""The folder of the user's cache that keeps them."""


def learnt_prior(
    method: Method,
    experience: Experience | None,
    *,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Prior:
    """What the method learns from the experience; from the user's cache if it did so before."""
    if experience is None or not method.transfers:
        return method.learn(experience, seed=seed, progress=progress)
    make = partial(method.learn, experience, seed=seed, progress=progress)
    if not is_kept(method):
        return make()
    said = f"{taught_by(experience, seed)} {learner_here(method)}"
    return remembered(
        PRIORS,
        hashlib.sha256(said.encode()).hexdigest()[:40],
        load=method.load,
        make=make,
        save=lambda prior, path: prior.save(path),
    )


def is_kept(method: Method) -> bool:
    """Whether what it has learnt is kept: of methods of somebody's own, which change between two
    runs, name and release say nothing.
    """
    return method.name in SHIPPED and METHODS[method.name] is method


def learner_here(method: Method) -> str:
    """The method's name, and what it has to learn without: `auto` then asks other experts."""
    return method.name if find_spec("jax") else f"{method.name} without JAX"


def taught_by(experience: Experience, seed: int) -> str:
    """A fingerprint (hex) of all that decides what a method learns: also the seed and the release.

    What is kept under another one is learnt anew.
    """
    said = f"{fingerprint_of_lessons(experience)} {seed} {version('foretune')}"
    return hashlib.sha256(said.encode()).hexdigest()


def forget_priors() -> None:
    """Delete what was learnt on the way: it knew what is to be forgotten."""
    forget(PRIORS)
