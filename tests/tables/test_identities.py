from dataclasses import replace

from foretune.tables.identity import plain_name, task_identity, task_name
from foretune.tables.target import Task
from tests.automl.samples import mixed_table


def test_a_task_is_named_by_its_content():
    table, other = mixed_table(Task.CLASSIFICATION), mixed_table(Task.CLASSIFICATION, seed=1)
    name, _, print_ = task_name(table).rpartition("@")
    assert name == "mixed"
    assert len(print_) == 16
    assert task_name(replace(table, name="copy")).endswith(print_)
    assert not task_name(other).endswith(print_)
    x = table.x.copy()
    x[0, 0] += 1e-9
    assert not task_name(replace(table, x=x)).endswith(print_)


def test_only_what_looks_like_a_fingerprint_is_one():
    assert task_identity("iris@000000000000000a") == task_identity("flowers@000000000000000a")
    assert plain_name("iris@000000000000000a") == "iris"
    assert task_identity("credit@2023") == plain_name("credit@2023") == "credit@2023"
