"""Several test processes share the cores: one numeric thread each, or they wait for each other."""

import os
import signal

from hypothesis import settings

from foretune.run.threads import ONE_NUMERIC_THREAD

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
