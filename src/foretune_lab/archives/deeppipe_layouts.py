"""The meaning of the columns of DeepPipe's three meta-datasets (Appendix I of the paper).

A layout lists stages. A stage lists the encoders of the paper's network in the order of the file.
An encoder maps its algorithms to their columns, separated by blanks. `name=choice` is one column
of a one-hot group. `@` is a column that only says that its algorithm is the chosen one.

Usually an encoder serves one algorithm. If it serves several, or an algorithm that may be left
out, the algorithm is the one with a column other than zero, and NONE if there is no such column.
"""

from dataclasses import dataclass
from typing import TypeAlias

Encoder: TypeAlias = dict[str, str]

NONE = "none"
FLAG = "@"


@dataclass(frozen=True)
class DatasetLayout:
    """The stages of a meta-dataset by name. An unnamed stage is common to all pipelines."""

    name: str
    stages: dict[str, tuple[Encoder, ...]]

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of columns of each encoder, by which a file is recognised."""
        return tuple(
            sum(len(columns.split()) for columns in encoder.values())
            for encoders in self.stages.values()
            for encoder in encoders
        )


_FOREST = (
    "min_samples_leaf n_estimators max_features min_weight_fraction_leaf min_samples_split "
    "max_depth criterion=entropy criterion=gini"
)

PMF = DatasetLayout(
    "PMF",
    {
        "preprocessor": (
            {"polynomial": "include_bias interaction_only degree"},
            {"pca": "keep_variance whiten"},
        ),
        "estimator": (
            {"extra_trees": f"bootstrap {_FOREST}"},
            {"random_forest": f"bootstrap max_leaf_nodes {_FOREST}"},
            {
                "xgboost": "reg_alpha colsample_bytree colsample_bylevel scale_pos_weight "
                "learning_rate max_delta_step base_score n_estimators subsample reg_lambda "
                "min_child_weight max_depth gamma"
            },
            {"knn": "p n_neighbors weights=distance weights=uniform"},
            {
                "gradient_boosting": "max_leaf_nodes learning_rate min_samples_leaf n_estimators "
                "subsample min_weight_fraction_leaf max_features min_samples_split max_depth loss"
            },
            {
                "decision_tree": "max_leaf_nodes min_samples_leaf max_features "
                "min_weight_fraction_leaf min_samples_split max_depth splitter "
                "criterion=entropy criterion=gini"
            },
            {
                "lda": "shrinkage_factor n_components tol shrinkage=none shrinkage=auto "
                "shrinkage=manual"
            },
            {
                "qda": "reg_param",
                "bernoulli_nb": "alpha fit_prior",
                "multinomial_nb": "alpha fit_prior",
                "gaussian_nb": FLAG,
            },
        ),
    },
)

TENSOR_OBOE = DatasetLayout(
    "Tensor-OBOE",
    {
        "imputer": (
            {"simple": "strategy=constant strategy=mean strategy=median strategy=most_frequent"},
        ),
        "encoder": ({"one_hot": FLAG},),
        "scaler": ({"standard": FLAG},),
        "dim_reducer": ({"pca": "n_components"}, {"select_k_best": "k"}, {"variance": FLAG}),
        "estimator": (
            {"extra_trees": "min_samples_split criterion=entropy criterion=gini"},
            {"gradient_boosting": "learning_rate max_depth max_features=all max_features=log2"},
            {"logistic": "C penalty=l1 penalty=l2 solver=liblinear solver=saga"},
            {"mlp": "alpha learning_rate_init learning_rate solver=adam solver=sgd"},
            {"random_forest": "min_samples_split criterion=entropy criterion=gini"},
            {"linear_svm": "C"},
            {"knn": "n_neighbors p"},
            {"decision_tree": "min_samples_split"},
            {"adaboost": "learning_rate n_estimators"},
            {"gaussian_nb": FLAG, "perceptron": FLAG},
        ),
    },
)

ZAP = DatasetLayout(
    "ZAP",
    {
        "": (
            {
                "": "early_epoch first_simple_model max_inner_loop_ratio "
                "skip_valid_score_threshold test_after_at_least_seconds "
                "test_after_at_least_seconds_max test_after_at_least_seconds_step batch_size "
                "cv_valid_ratio max_size max_valid_count steps_per_epoch train_info_sample "
                "amsgrad freeze_portion lr min_lr momentum nesterov warm_up_epoch "
                "warmup_multiplier wd simple_model=LR simple_model=NuSVC simple_model=RF "
                "simple_model=SVC scheduler=cosine scheduler=plateau"
            },
        ),
        "optimizer": ({"Adam": FLAG}, {"AdamW": FLAG}, {"SGD": FLAG}),
        "architecture": (
            {"ResNet18": FLAG},
            {"EfficientNet-B0": FLAG},
            {"EfficientNet-B1": FLAG},
            {"EfficientNet-B2": FLAG},
        ),
    },
)

LAYOUTS = (PMF, TENSOR_OBOE, ZAP)
