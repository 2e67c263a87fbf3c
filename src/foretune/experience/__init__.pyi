from foretune.experience.trial import (
    FINAL_STATUSES as FINAL_STATUSES,
    Direction as Direction,
    Evaluation as Evaluation,
    Metric as Metric,
    Status as Status,
    TaskRecords as TaskRecords,
    status_of as status_of,
)
from foretune.experience.evaluation_rows import (
    build_experience as build_experience,
    list_evaluations as list_evaluations,
)
from foretune.experience.experience import Experience as Experience
from foretune.experience.fingerprints import (
    fingerprint_of_evaluations as fingerprint_of_evaluations,
)
from foretune.experience.journal import Journal as Journal
from foretune.experience.splits import (
    LEAVE_ONE_OUT as LEAVE_ONE_OUT,
    Split as Split,
    find_splits as find_splits,
    for_learning as for_learning,
    k_fold as k_fold,
    learning_split as learning_split,
    leave_one_out as leave_one_out,
    recorded_split as recorded_split,
)
from foretune.experience.summary import summarise as summarise
from foretune.experience.trial import Trial as Trial
