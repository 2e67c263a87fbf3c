"""Past studies of an Optuna storage, for `foretune import optuna` and `foretune tune`."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from foretune._base.databases import hide_passwords
from foretune._base.progress import SILENT, Progress
from foretune.errors import ExperienceError, ForetuneError
from foretune.experience import Experience
from foretune.experience.alignment.carry_over import carry_over
from foretune.experience.alignment.missing_policy import USUAL_POLICY
from foretune.stores.optuna.storage import open_storage
from foretune.stores.optuna.stored_studies import need_optuna, read_studies
from foretune.stores.optuna.study_experience import StudyExperience, make_experience

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.study._frozen import FrozenStudy


def read(
    source: Path | str,
    *,
    studies: Sequence[str] = (),
    missing: str | None = None,
    progress: Progress = SILENT,
    opened: "Callable[[str], BaseStorage]" = open_storage,
) -> Experience:
    """Read the ended trials of studies, in one space.

    source: a storage URL, or a journal or SQLite file.
    studies: which studies; all of them if none is named.
    missing: what to do with trials that lack a value, as for `Experience.in_space`.
    opened: the function that opens the source.
    """
    need_optuna()
    storage = opened(str(source))
    wanted = _choose_studies(storage, studies, str(source))
    made = make_experience(read_studies(storage, wanted, progress), str(source))
    _tell(made)
    known = made.experience
    return carry_over(known, known.space, missing=missing or USUAL_POLICY).experience


def read_each(
    source: Path | str, *, besides: Sequence[str] = (), progress: Progress = SILENT
) -> dict[str, Experience | ExperienceError]:
    """Read every study in a space of its own. A study that cannot be read gives its error.

    The configurations may have gaps, which `carry_over` closes.

    besides: studies that are not read.
    """
    need_optuna()
    storage = open_storage(str(source))
    wanted = [study for study in storage.get_all_studies() if study.study_name not in besides]
    found: dict[str, Experience | ExperienceError] = {}
    for study in read_studies(storage, wanted, progress):
        try:
            made = make_experience([study], str(source))
        except ForetuneError as error:  # an error of the space counts, too
            found[study.name] = ExperienceError(str(error), rule=error.rule, field=error.field)
        else:
            _tell(made)
            found[study.name] = made.experience
    return found


def _tell(made: StudyExperience) -> None:
    """Warn the caller of `read` or `read_each`."""
    for each in made.warnings:
        warnings.warn(each, stacklevel=3)


def _choose_studies(
    storage: "BaseStorage", wanted: Sequence[str], source: str
) -> "Sequence[FrozenStudy]":
    """Return the wanted studies in that order; all of them if none is named."""
    known = {study.study_name: study for study in storage.get_all_studies()}
    for name in wanted:
        if name not in known:
            raise ExperienceError(
                f"a study must be one of those in '{hide_passwords(source)}', but got '{name}': "
                f"choose among {', '.join(known) or 'none'}",
                rule="unknown-study",
                field="studies",
                value=name,
            )
    return [known[name] for name in wanted or known]
