"""Learning from many past tasks while trials run."""

import threading

from foretune.search.optimizer import Optimizer


class BackgroundLearning:
    """Lets an optimiser learn in a thread when its next suggestion needs it.

    Learning may take minutes. Meanwhile trials are still watched: their results are stored, and
    their time limits hold.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def must_wait(self) -> bool:
        """Return True if the next suggestion has to wait, and begin to learn if nobody has.

        An error in learning is raised here.
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
        """True while the optimiser learns."""
        return self._thread is not None and self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._optimizer.finish_learning()
        except BaseException as error:
            self._error = error
