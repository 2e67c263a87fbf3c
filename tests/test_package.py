import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from textwrap import dedent

import pytest

import foretune


def test_every_public_name_exists() -> None:
    for name in foretune.__all__:
        assert getattr(foretune, name) is not None


def test_every_public_name_is_listed_before_it_is_used() -> None:
    code = "import foretune; print(set(foretune.__all__) - set(dir(foretune)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"


def test_the_version_is_that_of_the_package() -> None:
    assert foretune.__version__ == version("foretune")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = foretune.nonsense
    assert "nonsense" in str(caught.value)


def test_the_command_line_and_workers_start_without_heavy_libraries() -> None:
    heavy = ["numpy", "ConfigSpace", "pandas", "pyarrow", "scipy", "sklearn", "jax", "matplotlib"]
    code = (
        "import sys; from foretune.cli import foretune; "
        "import foretune.run.worker, foretune.run.commands, foretune.run.named_function; "
        f"print([m for m in {[*heavy, 'optuna']!r} if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_mistakes_are_refused_without_heavy_libraries(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,label\n1,yes\n")
    code = """
        import sys
        from foretune.cli import main
        for words in (
            "fit missing.csv --target label",
            "fit t.csv --target lable",
            "fit t.csv --target label --ignore b",
            "fit t.csv --target label --test missing.csv",
            "predict missing t.csv",
        ):
            sys.argv = ["foretune", *words.split()]
            try:
                main()
            except SystemExit as ended:
                print(ended.code, "pandas" in sys.modules, "numpy" in sys.modules)
    """
    command = [sys.executable, "-c", dedent(code)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert shown.stdout.split("\n") == [*["2 False False"] * 5, ""]


def test_no_network_library_is_needed_for_methods_without_networks() -> None:
    code = "import sys, foretune; foretune.Optimizer; print('jax' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"


def test_the_version_is_the_installed_one() -> None:
    command = [sys.executable, "-m", "foretune", "--version"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert version("foretune") in shown.stdout
