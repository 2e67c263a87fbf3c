"""A real Ray Tune run with Foretune's searcher, some of whose trials raise.

    python benchmarks/reliability/ray_tune.py

Sixteen trials in two processes, about a quarter of which raise. Prints how many trials Tune has,
how many failed, and the best loss; then a new searcher restores the state that was saved, and
Tune's folder is read back as experience.
"""

import argparse
import tempfile
from pathlib import Path


def objective(config: dict) -> None:
    from ray import tune

    if int(config["lr"] * 1e9) % 4 == 0:
        raise ValueError("meant to fail")
    tune.report({"loss": (config["lr"] - 0.01) ** 2 + config["net"]["width"]})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--method", default="gp")
    given = parser.parse_args()

    import ray
    from ray import tune

    from foretune.integrations.ray_tune import ForetuneSearcher
    from foretune.stores import TableColumns, import_experience

    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    folder = Path(tempfile.mkdtemp())
    tuner = tune.Tuner(
        tune.with_resources(objective, {"cpu": 1}),
        param_space={"lr": tune.loguniform(1e-4, 1.0), "net": {"width": tune.randint(1, 9)}},
        tune_config=tune.TuneConfig(
            search_alg=ForetuneSearcher(given.method, seed=0),
            metric="loss",
            mode="min",
            num_samples=given.trials,
            max_concurrent_trials=2,
        ),
        run_config=tune.RunConfig(name="demo", storage_path=str(folder), verbose=0),
    )
    results = tuner.fit()
    best = results.get_best_result()
    print(f"trials {len(results)}, failed {results.num_errors}")
    print(f"best loss {best.metrics['loss']:.4f} at {best.config}")
    saved = list((folder / "demo").glob("searcher-state-*"))
    again = ForetuneSearcher(given.method, seed=0, metric="loss", mode="min")
    again.restore(str(saved[0]))
    print(f"restored from {saved[0].name}: {len(again._trials)} trials")
    columns = TableColumns(values={"loss": "min"})
    experience = import_experience("ray", folder, columns=columns)
    print(f"imported {len(experience)} evaluations of task {experience.tasks[0]}")
    ray.shutdown()


if __name__ == "__main__":
    main()
