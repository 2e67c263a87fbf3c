from foretune.numerics.bounded_cache import BoundedCache


def test_each_value_is_found_once_and_the_first_is_forgotten_first() -> None:
    found: list[bytes] = []

    def length(key: bytes) -> int:
        return remembered.get(key, lambda: found.append(key) or len(key))

    remembered: BoundedCache[int] = BoundedCache(2)
    assert [length(key) for key in (b"a", b"bb", b"a", b"bb")] == [1, 2, 1, 2]
    assert found == [b"a", b"bb"]
    length(b"ccc")
    assert len(remembered) == 2
    length(b"bb")
    length(b"a")
    assert found == [b"a", b"bb", b"ccc", b"a"]


def test_finding_one_may_need_another() -> None:
    remembered: BoundedCache[int] = BoundedCache(8)

    def factorial(n: int) -> int:
        return remembered.get(bytes([n]), lambda: n * factorial(n - 1) if n else 1)

    assert factorial(5) == 120
    assert len(remembered) == 6
