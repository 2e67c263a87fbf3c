"""Assert which rule was broken, by data instead of English wording."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from foretune.errors import ForetuneError, ForetuneWarning

ANY = object()


@contextmanager
def refuses(
    rule: str,
    *,
    field: object = ANY,
    value: object = ANY,
    kind: type[ForetuneError] = ForetuneError,
) -> Iterator[pytest.ExceptionInfo[ForetuneError]]:
    """Expect an error that names this rule, and this field and value where they are given."""
    with pytest.raises(kind) as caught:
        yield caught
    _check(caught.value, rule, field, value)


@contextmanager
def warns(
    rule: str, *, field: object = ANY, value: object = ANY
) -> Iterator[pytest.WarningsRecorder]:
    """Expect a warning that names this rule, and this field and value where they are given."""
    with pytest.warns(ForetuneWarning) as caught:
        yield caught
    of_rule = [one.message for one in caught if getattr(one.message, "rule", "") == rule]
    assert of_rule, f"no warning of rule {rule!r}, but {[str(one.message) for one in caught]}"
    _check(of_rule[0], rule, field, value)


def _check(told: object, rule: str, field: object, value: object) -> None:
    found = (getattr(told, "rule", ""), getattr(told, "field", ""), getattr(told, "value", None))
    assert found[0] == rule, f"expected rule {rule!r}, but got {found}: {told}"
    assert field is ANY or found[1] == field, f"expected field {field!r}, but got {found}: {told}"
    assert value is ANY or found[2] == value, f"expected value {value!r}, but got {found}: {told}"
    assert str(told), "an error or a warning needs a sentence for people"
