"""Learning from many past tasks beside the trials that run meanwhile."""

import threading

from foretune.search.optimizer import Optimizer


class BackgroundLearning:
    """Lets an optimiser learn in a thread, when its next suggestion needs that.

    Learning may take minutes. Trials that run meanwhile are still watched: their results are
    stored, and their time limits hold.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def must_wait(self) -> bool:
        """Whether the next suggestion has to wait. Starts to learn if that has not begun.

        Raises what went wrong while learning.
        """
        if self._thread is None:
            if not self._optimizer.must_learn:
                return False
            # A daemon does not keep the program from ending: finished experts are in the cache.
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        if self._error is not None:
            raise self._error
        return self._thread.is_alive()

    @property
    def is_running(self) -> bool:
        """Whether the optimiser learns right now."""
        return self._thread is not None and self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._optimizer.finish_learning()
        except BaseException as error:
            self._error = error
