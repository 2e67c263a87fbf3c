"""Compares AutoML tools at equal time on forty public tables, one short job at a time.

    python benchmarks/automl_at_equal_time.py jobs TABLES --half settings --seconds 60 --out OUT \
        --tools foretune,lightgbm | xargs -P 8 --process-slot-var=SLOT -I{} sh -c '{}'
    python benchmarks/automl_at_equal_time.py summary OUT

TABLES is a folder of Parquet files with an `index.csv` (name, family, kind, target). `jobs` prints
one command for each table, tool, split and time. A job leaves one small file of JSON, and a job
whose file is there does nothing, so a series that was stopped goes on. Each job has two cores: the
pair whose number is in the variable SLOT, if there is one.

Tools: `foretune`, `foretune:NAME=FOLDER` (another tree of this repository, such as an earlier
commit), `lightgbm` (early stopping alone: step 0.05, five folds, averaged), `flaml`,
`autogluon-best`, `autogluon-medium`. Each peer needs a Python that has it (`--flaml`,
`--autogluon`); the default is this one.

Half of the families (by a hash) are for choosing settings, the other half confirms them. No table
is of a family that the shipped knowledge has seen, so nothing has to be left out of it. The loss is
the log loss, or the root of the share of the variance that is not explained, of 30% of the rows.
"""

import argparse
import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

CLASSES = (
    "analcatdata_halloffame", "anneal", "autouniv-au4-2500", "bank-marketing-full",
    "blood-transfusion-service", "cardiotocography-10class", "climate-simulation-craches",
    "cnae-9", "credit-g", "cylinder-bands", "dresses-sales", "eeg-eye-state", "eucalyptus",
    "first-order-theorem", "mfeat-fourier", "optdigits", "ozone-onehr", "qsar-biodegradation",
    "robot-nav-sensor-readings-24", "seismic-bumps", "soybean", "statlog-landsat-satellite",
    "steel-plates-faults", "wilt",
)  # fmt: skip
RARE = ("climate-simulation-craches", "ozone-onehr", "seismic-bumps", "wilt", "bank-marketing-full",
        "analcatdata_halloffame")  # fmt: skip
"""Tables with a rare class."""
NUMBERS = (
    "ailerons", "analcatdata_supreme", "balloon", "colleges_usnews", "csb_ch19e", "house8l",
    "kin8nm", "no2", "rmftsa_mtwashnh6597", "sensory", "socmob", "space_ga", "stock", "strike",
    "visualizing_soil", "wind",
)  # fmt: skip
HALVES = ("settings", "confirm")
TARGET = "target"
HELD_OUT = 0.3
CORES = 2
RUN_LIMIT = 4.0
"""A job ends after this many times its time, and three minutes."""

READ = """
import json, sys, time
import pandas as pd
train, test, out, kind, seconds, seed = sys.argv[1:]
frame, rows = pd.read_parquet(train), pd.read_parquet(test)
of_classes = kind == "classification"
"""
WRITE = """
    began = time.perf_counter()
    found = predict()
    spent = time.perf_counter() - began
    found.to_parquet(out + "/found.parquet")
    json.dump({"predict_seconds": spent, "fit_seconds": fitted}, open(out + "/said.json", "w"))
"""
SCRIPTS = {
    "lightgbm": """
if __name__ == "__main__":
    import lightgbm, numpy as np
    from sklearn.model_selection import KFold, StratifiedKFold
    began, y = time.perf_counter(), frame.pop("target")
    for name in frame.select_dtypes(exclude="number"):
        levels = pd.Index(frame[name].dropna().astype(str).unique())
        frame[name] = pd.Categorical(frame[name].astype("string").astype(object), levels)
        rows[name] = pd.Categorical(rows[name].astype("string").astype(object), levels)
    classes = sorted(y.unique()) if of_classes else []
    y = y.map({c: i for i, c in enumerate(classes)}) if of_classes else y
    folds = (StratifiedKFold if of_classes else KFold)(5, shuffle=True, random_state=int(seed))
    kind = lightgbm.LGBMClassifier if of_classes else lightgbm.LGBMRegressor
    models = []
    for learn, held in folds.split(frame, y):
        model = kind(n_estimators=10_000, learning_rate=0.05, n_jobs=2, verbosity=-1,
                     random_state=int(seed))
        model.fit(frame.iloc[learn], y.iloc[learn], eval_set=[(frame.iloc[held], y.iloc[held])],
                  callbacks=[lightgbm.early_stopping(50, verbose=False)])
        models.append(model)
        if time.perf_counter() - began > float(seconds):
            break
    fitted = time.perf_counter() - began
    def predict():
        each = [m.predict_proba(rows) if of_classes else m.predict(rows) for m in models]
        mean = np.mean(each, axis=0)
        return pd.DataFrame(mean, columns=classes) if of_classes else pd.DataFrame({"y": mean})
""",
    "flaml": """
if __name__ == "__main__":
    from flaml import AutoML
    began, y = time.perf_counter(), frame.pop("target")
    model = AutoML(task="classification" if of_classes else "regression", n_jobs=2, verbose=0,
                   metric="log_loss" if of_classes else "rmse", time_budget=float(seconds),
                   seed=int(seed))
    model.fit(frame, y)
    fitted = time.perf_counter() - began
    def predict():
        if of_classes:
            return pd.DataFrame(model.predict_proba(rows), columns=model.classes_)
        return pd.DataFrame({"y": model.predict(rows)})
""",
    "autogluon": """
if __name__ == "__main__":
    from autogluon.tabular import TabularPredictor
    began, classes = time.perf_counter(), frame["target"].nunique()
    kind = "regression" if not of_classes else "binary" if classes == 2 else "multiclass"
    model = TabularPredictor(label="target", problem_type=kind, path=out + "/model", verbosity=0,
                             eval_metric="log_loss" if of_classes else "root_mean_squared_error")
    model = model.fit(frame, time_limit=float(seconds), num_cpus=2, presets=PRESET)
    fitted = time.perf_counter() - began
    def predict():
        if of_classes:
            return model.predict_proba(rows).reset_index(drop=True)
        return pd.DataFrame({"y": model.predict(rows).to_numpy()})
""",
    "foretune": """
if __name__ == "__main__":
    from foretune.automl.final_model.model import Model
    model, fitted = Model.open(out + "/model/model.foretune"), 0.0
    def predict():
        if of_classes:
            return pd.DataFrame(model.predict_proba(rows), columns=list(model.classes))
        return pd.DataFrame({"y": model.predict(rows)})
""",
}
"""The code of each tool between reading the rows and predicting."""
PRESETS = {"autogluon-best": "best_quality", "autogluon-medium": "medium_quality"}


def half_of(family: str) -> str:
    """Return the half that a family of tables belongs to."""
    return HALVES[int(sha256(family.encode()).hexdigest(), 16) % 2]


def print_jobs(given: argparse.Namespace) -> None:
    """Print one command for each job, the short ones first."""
    index = pd.read_csv(given.tables / "index.csv").set_index("name")
    names = given.only.split(",") if given.only else [*CLASSES, *NUMBERS]
    names = [name for name in names if given.half in ("all", half_of(index.family[name]))]
    for seconds in map(float, given.seconds.split(",")):
        for seed in map(int, given.seeds.split(",")):
            for name in sorted(names, key=lambda each: index["rows"][each]):
                for tool in given.tools.split(","):
                    words = [sys.executable, __file__, "run", given.tables, name, tool, seed]
                    words += [f"{seconds:g}", "--out", given.out]
                    for peer in ("flaml", "autogluon"):
                        words += [f"--{peer}", getattr(given, peer)] * (peer in tool)
                    print(shlex.join(map(str, words)))


def run_job(given: argparse.Namespace) -> None:
    """Run one tool on one split of one table, unless its file is there."""
    label = given.tool.partition("=")[0].replace("foretune:", "foretune-")
    file = given.out / f"{given.table}.{label}.{given.seed}.{given.seconds:g}.json"
    if file.exists():
        return
    if "SLOT" in os.environ:
        first = CORES * int(os.environ["SLOT"]) % (os.cpu_count() or CORES)
        os.sched_setaffinity(0, {first, first + 1})
    index = pd.read_csv(given.tables / "index.csv").set_index("name").loc[given.table]
    learn, held = divide(given.tables / f"{given.table}.parquet", index, given.seed)
    about = {
        "table": given.table, "family": index.family, "kind": index.kind, "tool": label,
        "seed": given.seed, "seconds": given.seconds, "half": half_of(index.family),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        learn.to_parquet(folder / "train.parquet")
        held.drop(columns=TARGET).to_parquet(folder / "test.parquet")
        try:
            found = run_tool(given, folder, index.kind)
            found["loss"] = loss_of(pd.read_parquet(folder / "found.parquet"), held, index.kind)
        except (subprocess.SubprocessError, OSError, ValueError, KeyError) as error:
            found = {"error": f"{type(error).__name__}: {error}"[-2000:]}
    given.out.mkdir(parents=True, exist_ok=True)
    written = file.with_suffix(".tmp")
    written.write_text(json.dumps(about | found))
    written.rename(file)
    print(json.dumps(about | found)[:400], flush=True)


def divide(path: Path, index: Any, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return rows to learn from and rows to score; classes keep their shares."""
    from sklearn.model_selection import train_test_split

    frame = pd.read_parquet(path).rename(columns={index.target: TARGET})
    of_classes = index.kind == "classification"
    if of_classes:  # Texts, so that no tool takes codes for numbers.
        frame[TARGET] = "class " + frame[TARGET].astype(str)
    # Positions are divided, because older libraries cannot index texts of Arrow.
    codes = np.unique(frame[TARGET].to_numpy(dtype=object), return_inverse=True)[1]
    learn, held = train_test_split(
        np.arange(len(frame)),
        test_size=HELD_OUT,
        random_state=seed,
        stratify=codes if of_classes else None,
    )
    return frame.iloc[learn].reset_index(drop=True), frame.iloc[held].reset_index(drop=True)


def run_tool(given: argparse.Namespace, folder: Path, kind: str) -> dict[str, float]:
    """Fit and predict in processes of their own; return what was measured."""
    name, environment = given.tool.partition("-")[0].partition(":")[0], dict(os.environ)
    environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(CORES))
    environment["FORETUNE_HOME"] = str(folder / "home")
    python = str(getattr(given, name, None) or sys.executable)
    found: dict[str, float] = {}
    if name == "foretune":
        tree = given.tool.partition("=")[2] or str(Path(__file__).parents[1])
        environment |= {"PYTHONPATH": f"{tree}/src{os.pathsep}{environment.get('PYTHONPATH', '')}"}
        metric = "log_loss" if kind == "classification" else "r2"
        command = [python, "-m", "foretune", "fit", "train.parquet", "--target", TARGET]
        command += ["--task", kind, "--metric", metric, "--time", f"{given.seconds:g}s"]
        command += ["--jobs", str(CORES), "--seed", str(given.seed), "--no-remember", "-o", "model"]
        began = time.perf_counter()
        run(command, folder, environment, given.seconds)
        found["fit_seconds"] = time.perf_counter() - began
    preset = f"PRESET = {PRESETS.get(given.tool)!r}\n"
    (folder / "job.py").write_text(READ + preset + SCRIPTS[name] + WRITE)
    command = [python, "job.py", "train.parquet", "test.parquet", str(folder), kind]
    run([*command, f"{given.seconds:g}", str(given.seed)], folder, environment, given.seconds)
    found = json.loads((folder / "said.json").read_text()) | found
    model = folder / "model"
    files = [model / "model.foretune"] if name == "foretune" else model.rglob("*")
    size = sum(each.stat().st_size for each in files if each.is_file())
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return found | {"model_mb": size / 1e6, "process_mb": peak}


def run(command: list[str], folder: Path, environment: dict[str, str], seconds: float) -> None:
    """Run a command; its errors become part of the record."""
    limit = RUN_LIMIT * seconds + 180.0
    done = subprocess.run(
        command, check=False, cwd=folder, env=environment, capture_output=True, timeout=limit
    )
    if done.returncode:
        raise ValueError(done.stderr.decode(errors="replace")[-1500:])


def loss_of(found: pd.DataFrame, held: pd.DataFrame, kind: str) -> float:
    """Return the loss of predictions on the held-out rows."""
    y = held[TARGET]
    if kind == "regression":
        rest = float(np.mean((y - found.iloc[:, 0]) ** 2) / np.var(y))
        return float(np.sqrt(rest))
    columns = {str(name): place for place, name in enumerate(found.columns)}
    shares = found.to_numpy(dtype=float)
    shares = shares / shares.sum(axis=1, keepdims=True)
    own = [shares[row, columns[label]] if label in columns else 0 for row, label in enumerate(y)]
    return float(-np.mean(np.log(np.clip(own, 1e-15, 1.0))))


def print_summary(given: argparse.Namespace) -> None:
    """Print ranks, wins and costs for each time, kind and half."""
    rows = [json.loads(file.read_text()) for file in sorted(given.out.glob("*.json"))]
    frame = pd.DataFrame(rows)
    for error in frame.get("error", pd.Series(dtype=object)).dropna().unique():
        print("FAILED:", str(error)[-300:])
    groups = [*frame.groupby(["seconds", "half", "kind"]), *frame.groupby(["seconds"])]
    for name, part in groups:
        wide = part.pivot_table(index=["table", "seed"], columns="tool", values="loss")
        wide = wide.dropna().groupby("table").mean()
        if len(wide) and wide.shape[1] > 1:
            print(f"\n{name}: {len(wide)} tables that all tools have finished")
            print(_compare(wide, part).round(3).to_string())


def _compare(wide: pd.DataFrame, part: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each tool; the interval of the mean rank is over tables (bootstrap)."""
    ranks = wide.rank(axis=1)
    drawn = np.random.default_rng(0).integers(len(ranks), size=(2000, len(ranks)))
    means = ranks.to_numpy()[drawn].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    ours = "foretune" if "foretune" in wide else wide.columns[0]
    best, worst = wide.min(axis=1), wide.max(axis=1)
    spread = (worst - best).where(worst > best, 1.0)
    own = part.groupby("tool")
    return pd.DataFrame(
        {
            "mean rank": ranks.mean(),
            "from": pd.Series(low, wide.columns),
            "to": pd.Series(high, wide.columns),
            "first": (ranks.eq(ranks.min(axis=1), axis=0)).mean(),
            f"{ours} ahead": wide.gt(wide[ours], axis=0).mean(),
            "loss ratio": np.exp(np.log(wide.div(wide[ours], axis=0).clip(1e-6)).mean()),
            "normalised": wide.sub(best, axis=0).div(spread, axis=0).mean(),
            "fit s": own.fit_seconds.median(),
            "longest": own.fit_seconds.max(),
            "predict s": own.predict_seconds.median(),
            "model MB": own.model_mb.median(),
            "process MB": own.process_mb.max(),
        }
    ).sort_values("mean rank")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    jobs, one, summary = (parts.add_parser(name) for name in ("jobs", "run", "summary"))
    jobs.add_argument("tables", type=Path)
    jobs.add_argument("--half", choices=(*HALVES, "all"), default="all")
    jobs.add_argument("--tools", default="foretune,lightgbm")
    jobs.add_argument("--seeds", default="0")
    jobs.add_argument("--seconds", default="60")
    jobs.add_argument("--only", help="names of tables")
    one.add_argument("tables", type=Path)
    one.add_argument("table")
    one.add_argument("tool")
    one.add_argument("seed", type=int)
    one.add_argument("seconds", type=float)
    for each in (jobs, one):
        each.add_argument("--out", type=lambda text: Path(text).absolute(), required=True)
        for peer in ("flaml", "autogluon"):
            each.add_argument(f"--{peer}", type=Path, default=Path(sys.executable))
    summary.add_argument("out", type=Path)
    given = parser.parse_args()
    {"jobs": print_jobs, "run": run_job, "summary": print_summary}[given.part](given)


if __name__ == "__main__":
    main()
