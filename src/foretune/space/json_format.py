"""ConfigSpace's JSON: the file format of spaces, and the form in which two spaces are compared."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ConfigSpace
import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.exceptions import CyclicDependancyError
from ConfigSpace.read_and_write.dictionary import (
    CONDITION_DECODERS,
    CONDITION_ENCODERS,
    FORBIDDEN_DECODERS,
    FORBIDDEN_ENCODERS,
    HYPERPARAMETER_DECODERS,
    HYPERPARAMETER_ENCODERS,
)

from foretune.errors import SpaceError
from foretune.space.definition import Definition, Draft, by_name
from foretune.space.limits import check_document, check_hyperparameters

LONGEST_GIST = 200
PARTS = ("conditions", "clauses")
"""The keys under which a rule holds other rules."""
FORMAT_VERSION = 0.4
"""The version of ConfigSpace's JSON."""
ENCODERS: Mapping[type, tuple[str, Any]] = {
    **HYPERPARAMETER_ENCODERS,
    **CONDITION_ENCODERS,
    **FORBIDDEN_ENCODERS,
}


def write_space(given: ConfigurationSpace | Definition | Draft, stages: Sequence[str] = ()) -> str:
    """Return the JSON of a space; hyperparameters named in `stages` get a mark."""
    if isinstance(given, ConfigurationSpace):
        hyperparameters = list(given.values())
    else:
        hyperparameters = list(given.hyperparameters.values())
    check_hyperparameters(hyperparameters)
    try:
        document: dict[str, Any] = {
            "name": given.name,
            "hyperparameters": [_encode(each) for each in hyperparameters],
            "conditions": [_encode(each) for each in given.conditions],
            "forbiddens": [_encode(each) for each in given.forbidden_clauses],
            "python_module_version": ConfigSpace.__version__,
            "format_version": FORMAT_VERSION,
        }
        for item in document["hyperparameters"]:
            if item["name"] in stages:
                item["meta"] = {**(item["meta"] or {}), "stage": True}
        return json.dumps(document, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise SpaceError(
            "a space must consist of what JSON can hold (choices that are text, numbers, booleans, "
            f"None or tuples of these), but {gist(error)}: replace the offending part",
            rule="not-json",
        ) from error


def read_space(text: str) -> Definition:
    """Read the parts of the space that `text` describes."""
    try:
        document = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise SpaceError(
            f"a space must be ConfigSpace's JSON, but the text is no JSON ({gist(error)}): "
            "write it with Space.to_json or ConfigurationSpace.to_json",
            rule="not-json",
        ) from error
    if not isinstance(document, dict) or not isinstance(document.get("hyperparameters"), list):
        raise SpaceError(
            "a space must be ConfigSpace's JSON with a list 'hyperparameters', but this JSON has "
            "another shape: write it with Space.to_json or ConfigurationSpace.to_json",
            rule="not-a-space",
        )
    _check_characters(text, document)
    if not document["hyperparameters"]:
        raise SpaceError(
            "a space must have at least one hyperparameter, but got none: add one",
            rule="no-hyperparameters",
        )
    check_document(document)
    try:
        definition = _decode(_with_tuples(document))
    except CyclicDependancyError as error:
        raise SpaceError(
            "conditions must not form a cycle, but some hyperparameter here is active only if it "
            "is active itself: take one of its conditions away",
            rule="cyclic-conditions",
        ) from error
    except Exception as error:
        # ConfigSpace trusts its input, and raises many kinds of errors.
        raise SpaceError(
            f"a space must be one that ConfigSpace accepts, but it says: {gist(error)}",
            rule="refused-by-configspace",
        ) from error
    for hyperparameter in definition.hyperparameters.values():
        if not isinstance(hyperparameter.meta, Mapping | None):
            raise SpaceError(
                f"the notes ('meta') of a hyperparameter must be an object, but those of "
                f"'{hyperparameter.name}' are {hyperparameter.meta!r}: leave them out",
                rule="not-a-mapping",
                field=hyperparameter.name,
                value=hyperparameter.meta,
            )
    return definition


def config_space_of(text: str) -> ConfigurationSpace:
    """Return ConfigSpace's own object for the JSON of a space."""
    return ConfigurationSpace.from_serialized_dict(_with_tuples(json.loads(text)))


def _check_characters(text: str, document: Mapping[str, Any]) -> None:
    """Refuse halves of characters (lone surrogates), which no file and no program can hold."""
    if text.isascii() and "\\ud" not in text.lower():
        return
    if _is_writable(document):
        return
    wrong = next((each for each in document["hyperparameters"] if not _is_writable(each)), None)
    name = wrong.get("name", "") if isinstance(wrong, dict) else ""
    owner = f"the hyperparameter {name!a} has one" if wrong else "its rules or notes have one"
    raise SpaceError(
        "names and choices must not hold half of a character (a lone surrogate, such as "
        f"'\\ud800'), but {owner}: write the whole character",
        rule="half-character",
        field=name,
    )


def _is_writable(part: Any) -> bool:
    try:
        json.dumps(part, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def fingerprint_of(text: str) -> str:
    """Return a sha256 (hex) of a space without its name, notes, weights and versions."""
    document = json.loads(text)
    hyperparameters = [_without_notes(item) for item in document["hyperparameters"]]
    rules = [
        sorted(canonical(rule) for rule in document.get(part, []))
        for part in ("conditions", "forbiddens")
    ]
    return hashlib.sha256(canonical([hyperparameters, *rules]).encode()).hexdigest()


def canonical(part: Any) -> str:
    """Return a part of ConfigSpace's JSON so that equal parts give equal texts."""
    return json.dumps(part, sort_keys=True, separators=(",", ":"))


def gist(error: BaseException) -> str:
    """Return another library's message, short enough for a sentence."""
    words = " ".join(str(error).split()) or type(error).__name__
    return (words if len(words) <= LONGEST_GIST else words[:LONGEST_GIST] + "...").rstrip(".")


def _encode(part: Any, _: Any = None) -> dict[str, Any]:
    """Return the JSON of a hyperparameter, a condition or a clause; ConfigSpace calls it for parts.

    Raises ValueError for a type that ConfigSpace cannot write.
    """
    if type(part) not in ENCODERS:
        raise ValueError(f"{type(part).__name__} cannot be written")
    kind, encode = ENCODERS[type(part)]
    return {"type": kind, **encode(part, _encode)}


def _decode(document: Mapping[str, Any]) -> Definition:
    """Decode each part with ConfigSpace's own decoders, which change the items."""
    named = by_name(_decoder(HYPERPARAMETER_DECODERS, {})(i) for i in document["hyperparameters"])
    condition, clause = (_decoder(each, named) for each in (CONDITION_DECODERS, FORBIDDEN_DECODERS))
    return Definition.of(
        named.values(),
        [condition(item) for item in document["conditions"]],
        [clause(item) for item in document["forbiddens"]],
        document.get("name"),
    )


def _decoder(decoders: Mapping[str, Any], named: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a decoder of JSON items that may refer to the hyperparameters in `named`."""

    def decode(item: dict[str, Any], *_: Any) -> Any:
        kind = item.pop("type")
        if kind not in decoders:
            raise ValueError(f"there is no type '{kind}', only {', '.join(decoders)}")
        return decoders[kind](item, named, decode)

    return decode


def _without_notes(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a hyperparameter without weights and notes, but with the mark of a stage."""
    weights = {"weights": None} if "weights" in item else {}
    return {**item, **weights, "meta": bool((item.get("meta") or {}).get("stage", False))}


def _plain(part: Any) -> Any:
    if isinstance(part, np.generic):
        return part.item()
    raise TypeError(f"{part!r} is of the type {type(part).__name__}")


def _with_tuples(document: Mapping[str, Any]) -> dict[str, Any]:
    """Turn choices that are lists into tuples, which JSON does not have."""
    return {
        **document,
        **{
            part: [_restore(item) for item in document.get(part) or []]
            for part in ("hyperparameters", "conditions", "forbiddens")
        },
    }


def _restore(item: Any) -> dict[str, Any]:
    restored = dict(item)
    for key in ("value", "default_value"):
        if key in restored:
            restored[key] = _to_tuples(restored[key])
    for key in ("choices", "sequence", "values"):
        if key in restored:
            restored[key] = [_to_tuples(value) for value in restored[key]]
    for key in PARTS:
        if key in restored:
            restored[key] = [_restore(part) for part in restored[key]]
    return restored


def _to_tuples(value: Any) -> Any:
    return tuple(_to_tuples(part) for part in value) if isinstance(value, list) else value
