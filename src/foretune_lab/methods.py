"""The methods of the laboratory: what papers compare with, each an entry point of Foretune's."""

from foretune.search import Design, Method, lazy_learner

WS_GP = Method(
    "ws-gp",
    "GP that opens with the best configuration of each past task",
    lazy_learner("foretune_lab.baselines.warm_start", "warm_started_gp"),
    design=Design("random", 0),
    needs_experience=True,
)

AUTOGP = Method(
    "autogp",
    "GP in the box around the past tasks' best configurations",
    lazy_learner("foretune_lab.baselines.bounding_box", "gp_in_a_box"),
    needs_experience=True,
)

ABLR = Method(
    "ablr",
    "Bayesian linear regression on features that past tasks share",
    lazy_learner("foretune_lab.baselines.ablr", "ablr"),
    needs_experience=True,
)

ABLR_COPULA = Method(
    "ablr-copula",
    "the same on Gaussian scores of the losses",
    lazy_learner("foretune_lab.baselines.ablr", "ablr_copula"),
    needs_experience=True,
)

DKGP = Method(
    "dkgp",
    "GP on features that a network learns from the target alone",
    lazy_learner("foretune_lab.baselines.fsbo", "dkgp"),
)

DNGO = Method(
    "dngo",
    "Bayesian linear regression on the last layer of a network",
    lazy_learner("foretune_lab.baselines.dngo", "dngo"),
)

FSBO = Method(
    "fsbo",
    "GP on features and with a kernel that past tasks taught (few-shot)",
    lazy_learner("foretune_lab.baselines.fsbo", "fsbo"),
    design=Design("random", 0),
    needs_experience=True,
)

PMF = Method(
    "pmf",
    "GP over latent positions of configurations, from a table of past losses",
    lazy_learner("foretune_lab.baselines.pmf", "pmf"),
    needs_experience=True,
)

OBOE = Method(
    "oboe",
    "low-rank table of past losses, completed by regression",
    lazy_learner("foretune_lab.baselines.oboe", "oboe"),
    design=Design("random", 0),
    needs_experience=True,
)

SGPT = Method(
    "sgpt",
    "past tasks' GPs vote where they rank trials as the target does",
    lazy_learner("foretune_lab.baselines.sgpt", "sgpt"),
    acquisition="own",
    needs_experience=True,
)

SGPT_COPULA = Method(
    "sgpt-copula",
    "the same on Gaussian scores of the losses",
    lazy_learner("foretune_lab.baselines.sgpt", "sgpt_copula"),
    acquisition="own",
    needs_experience=True,
)

TST = Method(
    "tst",
    "two-stage transfer: past tasks' GPs averaged by how they rank the trials",
    lazy_learner("foretune_lab.baselines.tst", "tst"),
    needs_experience=True,
)

TAF = Method(
    "taf",
    "transfer acquisition: the same past GPs as votes for an improvement",
    lazy_learner("foretune_lab.baselines.tst", "taf"),
    acquisition="own",
    needs_experience=True,
)

BANDIT_BO = Method(
    "bandit-bo",
    "one GP an algorithm, which share nothing",
    lazy_learner("foretune_lab.baselines.bandits", "bandit_bo"),
    design=Design("per-algorithm", 2),
)

RISING_BANDITS = Method(
    "rising-bandits",
    "one random forest an algorithm; algorithms that fall behind are dropped",
    lazy_learner("foretune_lab.baselines.bandits", "rising_bandits"),
    design=Design("per-algorithm", 2),
)

PRETRAINED_GPS = Method(
    "pretrained-gps",
    "one GP an algorithm, with mean and kernel learnt from past tasks",
    lazy_learner("foretune_lab.baselines.pretrained_gps", "pretrained_gps"),
    design=Design("per-algorithm", 2),
    needs_experience=True,
)

AS_ML = Method(
    "as-ml",
    "a GP on the algorithm that meta-features speak for",
    lazy_learner("foretune_lab.baselines.algorithm_selection", "as_ml"),
    needs_experience=True,
    needs_meta_features=True,
)

AHS_ML = Method(
    "ahs-ml",
    "configurations in the order that meta-features speak for",
    lazy_learner("foretune_lab.baselines.algorithm_selection", "ahs_ml"),
    design=Design("random", None),
    needs_experience=True,
    needs_meta_features=True,
)
