from foretune.run.budget import Budget as Budget
from foretune.run.commands import (
    Command as Command,
    CommandError as CommandError,
)
from foretune.run.executor import (
    Executor as Executor,
    Limits as Limits,
    Outcome as Outcome,
)
from foretune.run.executor_choice import ExecutorChoice as ExecutorChoice
from foretune.run.inline import InlineExecutor as InlineExecutor
from foretune.run.pool import ProcessPool as ProcessPool
from foretune.run.ray_pool import RayPool as RayPool
from foretune.run.reports import Report as Report, TrialStart as TrialStart
from foretune.run.running_trial import RunningTrial as RunningTrial
from foretune.run.study import (
    MemoryStudy as MemoryStudy,
    Study as Study,
)
from foretune.run.tuning_loop import tune as tune
