import errno
import math

import pytest

from foretune.experience import Evaluation, Status
from foretune.experience.journal import Journal
from tests.refusals import refuses

FIRST = Evaluation("a", {"x": 0.1, "k": "b"}, {"accuracy": 0.5}, Status.DONE, 0.25)
SECOND = Evaluation("b", {"x": 1e-9}, {}, Status.TIMEOUT, 3.0, reason="over its limit")


@pytest.fixture
def path(tmp_path):
    journal = Journal(tmp_path / "trials.jsonl")
    journal.add(FIRST)
    journal.add(SECOND)
    return journal.path


def test_lines_come_back_as_they_were(path):
    assert Journal(path).evaluations == [FIRST, SECOND]


def test_a_kill_at_any_byte_leaves_whole_lines(path):
    content = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == ord("\n")]
    for length in range(len(content) + 1):
        path.write_bytes(content[:length])
        journal = Journal(path)
        assert journal.evaluations == [FIRST, SECOND][: sum(end <= length for end in ends)]
        journal.add(SECOND)
        assert Journal(path).evaluations[-1] == SECOND


def test_a_full_disk_is_named_by_the_file_it_has_no_room_for(path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left")

    monkeypatch.setattr("foretune.experience.journal.os.fsync", full)
    with pytest.raises(OSError, match="No space left") as told:
        Journal(path).add(SECOND)
    assert told.value.filename == str(path)


def test_values_that_are_no_numbers_of_json(path):
    Journal(path).add(Evaluation("c", {}, {"r2": float("-inf")}, Status.DONE, 0.0))
    assert Journal(path).evaluations[-1].values == {"r2": -math.inf}


@pytest.mark.parametrize("text", ["nonsense\n", "[1]\n", '{"task": "a"}\n'])
def test_other_files_are_refused(path, text):
    path.write_text(text)
    with refuses("broken-journal-line"):
        Journal(path)
