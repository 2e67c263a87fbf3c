"""Made-up past datasets in a shipped space, and folders of knowledge learnt from them."""

import numpy as np

from foretune.automl.knowledge.knowledge import ExperienceSource, FitKnowledge
from foretune.automl.metrics import scorer
from foretune.automl.spaces import load_shipped_space
from foretune.experience import Experience
from foretune_lab.collect.designs import draw_shared_configs

SPACE = "pipeline-regression"
ONLY = ("knn", "elastic_net", "rf", "svm")


def past(n_tasks=5, n_configs=16, seed=0, only=ONLY):
    """Datasets on which `rf` is mostly best, `svm` where `log_rows` is small."""
    chosen = load_shipped_space(SPACE)
    rng = np.random.default_rng(seed)
    configs = draw_shared_configs(chosen, n_configs, seed=0, only=only)
    algorithms = [config["estimator"] for config in configs.dicts()]
    names = [f"past{number}" for number in range(n_tasks)]
    rows = np.arange(n_tasks) + 4.0
    merit = {"rf": 0.3, "knn": 0.1, "elastic_net": 0.0}
    r2 = np.empty((n_tasks, n_configs))
    for task, few in enumerate(rows):
        suits = merit | {"svm": 0.4 if few < 6 else 0.2}
        r2[task] = [0.5 + suits[name] for name in algorithms]
    r2 += rng.uniform(0, 0.02, r2.shape)
    return Experience.from_matrix(
        configs.space,
        configs,
        names,
        [scorer("r2", chosen.task).metric, scorer("rmse", chosen.task).metric],
        {"r2": r2, "rmse": 1.0 - r2},
        seconds=np.full(r2.shape, 2.0),
        meta_features={
            name: {"log_rows": float(n), "skew": 0.0} for name, n in zip(names, rows, strict=True)
        },
        splits={"families": {"train": names[1:], "test": names[:1]}},
    )


def knowledge_of(experience, space=None):
    """What an experience says by its first metric, about its own space or a part of it."""
    metric = experience.metrics[0]
    tasks, evaluations = len(experience.tasks), len(experience)
    source = ExperienceSource("own", tasks, evaluations, metric.name, lambda: experience)
    return FitKnowledge(space or experience.space, metric, (source,))
