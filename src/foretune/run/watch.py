"""What a display hears while trials run."""

from foretune.experience.trial import Trial


class Watch:
    """Hears of the trials of a study. This base class shows nothing."""

    def trial_began(self, trial: Trial) -> None:
        """A trial was begun, resumed or taken over by this process."""

    def trial_reported(self, number: int, step: float) -> None:
        """A trial of this process has reported a step, which is stored."""

    def trial_paused(self, trial: Trial) -> None:
        """A trial of any process was paused; first come those that were paused before the run."""

    def trial_ended(self, trial: Trial) -> None:
        """A trial of any process has ended; first come those that had ended before the run."""


SILENT_WATCH = Watch()
