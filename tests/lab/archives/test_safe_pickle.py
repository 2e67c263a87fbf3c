import builtins
import io
import os
import pickle
from collections import OrderedDict

import numpy as np
import pytest

from foretune.errors import ExperienceError
from foretune_lab.archives.safe_pickle import load_plain
from tests.refusals import refuses

PLAIN = {"00": {"loss": [1.0, 2.5], "n": (1, None, True)}, "b": [b"x", {1, 2}, frozenset({3})]}


class Calls:
    """Pickles as a call of `function`: what a hostile file does."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


def load(data: bytes) -> object:
    return load_plain(io.BytesIO(data), "table.pkl")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_reads_plain_containers_of_every_protocol(protocol):
    plain = {"00": {"loss": [1.0, 2.5], "n": (1, None, True)}, "b": ["x", 3]}
    assert load(pickle.dumps(plain, protocol)) == plain


def test_reads_bytes_and_sets():
    assert load(pickle.dumps(PLAIN, 4)) == PLAIN


@pytest.mark.parametrize(
    "hostile",
    [
        Calls(os.system, "echo no"),
        Calls(eval, "1 + 1"),
        Calls(exec, "pass"),
        Calls(builtins.__import__, "os"),
        Calls(getattr, "text", "upper"),
        Calls(print, "no"),
    ],
)
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_refuses_calls(hostile, protocol):
    with refuses("unsafe-pickle", value="table.pkl"):
        load(pickle.dumps({"00": hostile}, protocol))


def test_nothing_runs(tmp_path):
    witness = tmp_path / "witness"
    with pytest.raises(ExperienceError):
        load(pickle.dumps(Calls(os.mkdir, str(witness))))
    assert not witness.exists()


def test_refuses_an_attribute_of_an_attribute():
    """The dotted names of protocol 4 reach methods without getattr."""
    hostile = b"\x80\x04\x8c\x08builtins\x8c\x0eobject.__new__\x93."
    with refuses("unsafe-pickle"):
        load(hostile)


@pytest.mark.parametrize("value", [OrderedDict(a=1), np.arange(3), np.float64(1), complex(1, 2)])
def test_refuses_even_harmless_classes(value):
    with refuses("unsafe-pickle", value="table.pkl"):
        load(pickle.dumps(value))


def test_refuses_persistent_objects():
    with refuses("unsafe-pickle"):
        load(b"\x80\x02X\x01\x00\x00\x00aQ.")


@pytest.mark.parametrize("damaged", [b"", b"not a pickle", pickle.dumps(PLAIN)[:-5], b"\x80\x04."])
def test_refuses_damaged_files(damaged):
    with refuses("unsafe-pickle", value="table.pkl"):
        load(damaged)
