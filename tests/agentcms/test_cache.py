"""The in-process cache: storage, eviction and threads."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError

from cachetools import FIFOCache, LRUCache, TTLCache

from agentcms.cache import SizeLimitedCache, cache_result
from tests.concurrently import run_concurrently


def text_cache(characters=1000, **options):
    return SizeLimitedCache(FIFOCache(characters, getsizeof=len), **options)


def test_a_value_is_found_under_its_key():
    cache = text_cache()
    cache.set("a", "text")

    assert (cache.get("a"), cache.get("b")) == ("text", None)
    assert cache.get_many(["a", "b"]) == {"a": "text"}


def test_the_oldest_values_are_removed_when_the_cache_is_full():
    cache = text_cache()
    for number in range(200):
        cache.set(number, "10 letters")

    assert [cache.get(99), cache.get(100), cache.get(199)] == [None, "10 letters", "10 letters"]


def test_a_replaced_value_counts_once():
    cache = text_cache()
    cache.set("b", "10 letters")
    for _ in range(500):
        cache.set("a", "10 letters")

    assert cache.get("b") == "10 letters"


def test_a_value_that_is_too_large_is_not_stored():
    cache = text_cache(max_value_size=10)
    cache.set("a", "10 letters")
    cache.set("b", "11 letters.")
    cache.set("c", "x" * 2000)

    assert [cache.get(key) for key in "abc"] == ["10 letters", None, None]


def test_a_value_larger_than_the_cache_is_not_stored():
    cache = text_cache()
    cache.set("a", "x" * 1001)

    assert cache.get("a") is None


def test_a_value_is_created_once_and_again_after_its_removal():
    cache, created = SizeLimitedCache(LRUCache(2)), []

    for key in (1, 2, 1, 3, 1, 2):
        assert cache.get_or_create(key, lambda key=key: created.append(key) or key) == key

    assert created == [1, 2, 3, 2]
    assert len(cache) == 2


def test_a_value_expires():
    now = [0.0]
    cache = SizeLimitedCache(TTLCache(10, 5, timer=lambda: now[0]))
    cache.set("a", "text")
    now[0] = 4.9
    before = cache.get("a")
    now[0] = 5.1

    assert (before, cache.get("a"), cache.get_many(["a"])) == ("text", None, {})


def test_a_cleared_cache_is_empty():
    cache = text_cache()
    cache.set("a", "text")

    cache.clear()

    assert (cache.get("a"), len(cache)) == (None, 0)


def test_threads_share_a_cache():
    cache = text_cache(100)

    def write_and_read(number):
        for turn in range(2000):
            cache.set((number, turn % 20), "10 letters")
            assert cache.get((number, turn % 20)) in ("10 letters", None)
            assert len(cache) <= 10

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write_and_read, range(8)))

    assert cache._cache.currsize == 10 * len(cache) <= 100


def test_threads_wait_for_a_result_instead_of_computing_it_too():
    computed = []
    second_thread = Barrier(2)

    @cache_result
    def result():
        computed.append(1)
        try:
            second_thread.wait(0.2)
        except BrokenBarrierError:  # as it must be: nobody else computes
            return "text"
        return "text of two threads"

    assert run_concurrently([result] * 4) == ["text"] * 4
    assert len(computed) == 1
