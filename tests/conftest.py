"""Several test processes share the cores: one numeric thread each, or they wait for each other."""

import os

from foretune.run.threads import ONE_NUMERIC_THREAD

# Before any test imports NumPy or JAX, which read these when they start.
os.environ.update(ONE_NUMERIC_THREAD)
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)
