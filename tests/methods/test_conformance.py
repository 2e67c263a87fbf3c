"""Every method of the registry runs through the suite that ships for methods."""

import pytest

from foretune.search import METHODS
from foretune.testing import MethodConformance


@pytest.fixture(params=sorted(METHODS), scope="class", autouse=True)
def _method(request: pytest.FixtureRequest) -> None:
    request.cls.method = METHODS[request.param]


class TestEveryMethod(MethodConformance):
    pass
