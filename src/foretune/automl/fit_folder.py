"""The files that a fit keeps in its folder.

    FOLDER/table-ID.npz     the rows that trials are scored on, for the worker processes
    FOLDER/study.db         the trials, as an Optuna study (if no other store is given)
    FOLDER/predictions/ID/  out-of-fold predictions, if the model may be a blend
    FOLDER/model.foretune   the model that `predict` reads
    FOLDER/trials.parquet   the trials as an experience
    FOLDER/report.html      the page for people

An ID is a fingerprint of the rows or of the evaluation, so several fits may use one folder, one
after the other or at the same time.
"""

from dataclasses import dataclass
from pathlib import Path

from foretune._base.files import make_private_folder


@dataclass(frozen=True, slots=True)
class FitFolder:
    """The paths of a fit's files."""

    folder: Path

    def table(self, rows: str) -> Path:
        """Return the file of the rows that trials are scored on, by their fingerprint."""
        return self.folder / f"table-{rows}.npz"

    @property
    def study(self) -> Path:
        """The path of the study with the trials."""
        return self.folder / "study.db"

    def predictions(self, evaluation: str) -> Path:
        """Make the folder of out-of-fold predictions, by the fingerprint of the evaluation.

        Only the owner may read it, because predictions tell about the user's rows.
        """
        made = (self.folder / "predictions" / evaluation).absolute()
        make_private_folder(made.parent)
        make_private_folder(made)
        return made

    @property
    def model(self) -> Path:
        """The path of the fitted model."""
        return self.folder / "model.foretune"

    @property
    def trials(self) -> Path:
        """The path of the trials as an experience."""
        return self.folder / "trials.parquet"

    @property
    def report(self) -> Path:
        """The path of the page for people."""
        return self.folder / "report.html"
