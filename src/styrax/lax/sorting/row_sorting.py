"""Sorting the rows of an array on the CPU: keys as unsigned integers, radix and insertion sort of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.types import dtypes
from styrax.core.types.index_type import INDEX

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

INT32 = np.dtype(np.int32)
UINT32, UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)


def order_bits(b: Builder, x: Any, total: bool = False) -> list[Any]:
    """Unsigned integers whose order is that of a scalar, for the loop builder, the most important first.

    With `total` signs of zeros and NaNs count: -NaN, -inf, ..., -0, 0, ..., inf, NaN. Without, zeros are
    equal and NaNs are equal and last.
    """
    dtype = x.dtype
    if dtype == np.bool_:
        return [b.cast(x, np.dtype(np.uint8))]
    if dtype.kind == "c":
        return [*order_bits(b, b.real(x), total), *order_bits(b, b.imag(x), total)]
    if dtypes.issubdtype(dtype, np.integer):
        signed = dtypes.issubdtype(dtype, np.signedinteger)
        bits = np.dtype(f"uint{8 * dtype.itemsize}")
        if dtype.itemsize == 1:  # four-bit types, too
            wide = b.cast(x, INT32)
            return [b.cast(b.add(wide, b.const(128 if signed else 0, INT32)), bits)]
        return [b.xor(b.bitcast(x, bits), b.const(1 << (8 * dtype.itemsize - 1), bits))] if signed else [x]
    if dtype.itemsize == 1:
        x = b.cast(x, np.dtype(np.float32))
        dtype = x.dtype
    width = 8 * dtype.itemsize
    bits = np.dtype(f"uint{width}")
    raw = b.bitcast(x, bits)
    top = b.const(1 << (width - 1), bits)
    negative = b.ne(b.and_(raw, top), b.const(0, bits))
    key = b.xor(raw, b.select(negative, b.const((1 << width) - 1, bits), top))
    if total:
        return [key]
    key = b.select(b.eq(x, b.const(0, dtype)), top, key)
    return [b.select(b.ne(x, x), b.const((1 << width) - 1, bits), key)]


_INSERTION = 24  # rows up to this length are sorted by insertion
_FEW = 64  # the same where lengths are known only when the program runs: digits are longer then


def from_order_bits(b: Builder, bits: Any, dtype: Any) -> Any:
    """The scalar of which `order_bits` made one unsigned integer."""
    width = 8 * dtype.itemsize
    if dtype == np.bool_:
        return b.ne(bits, b.const(0, bits.dtype))
    top = b.const(1 << (width - 1), bits.dtype)
    if dtype.kind == "u":
        return bits
    if dtype.kind == "i":
        return b.bitcast(b.xor(bits, top), dtype)
    positive = b.ne(b.and_(bits, top), b.const(0, bits.dtype))
    return b.bitcast(b.xor(bits, b.select(positive, top, b.const((1 << width) - 1, bits.dtype))), dtype)


def keys_hold_values(dtype: Any) -> bool:
    """Whether `order_bits` of a dtype is one integer of its own width, from which the value comes back."""
    if dtype == np.bool_ or dtype.kind in "iu" and dtype.isbuiltin:
        return True
    return dtypes.issubdtype(dtype, np.floating) and dtype.itemsize > 1


class RowSorter:
    """Writes the statements that order the positions of one row.

    After `by` for each key, from the last to the first, `position(i)` is the place in the row of the
    element that comes `i`-th.
    """

    def __init__(self, b: Any, n: Any, size: Any):
        self.b = b
        self.n = n
        self.size = size
        self.short = isinstance(size, int) and size <= _INSERTION
        self.order: Any = None  # scratch of positions after the first key
        self.ping: Any = None
        self.pong: Any = None
        self.histogram: Any = None
        self.reader: Callable[[Any], Any] | None = None

    # The digits are those of the key; positions travel along.
    def _digits(self, width: int) -> list[tuple[int, int]]:
        """(shift, bits) of each pass of a radix sort of keys of `width` bits."""
        if width <= 8:
            return [(0, width)]
        if width == 16:
            return [(0, 8), (8, 8)]
        small = isinstance(self.size, int) and self.size < 4096
        step = 8 if small else 11
        return [(s, min(step, width - s)) for s in range(0, width, step)]

    def position(self, i: Any) -> Any:
        b = self.b
        if self.reader is None:
            return i
        return b.cast(self.reader(i), INDEX)

    def values(self, key: Callable[[Any], Any], dtype: Any) -> Any:
        """Sorts unsigned integers `key(place)` alone. Returns the buffer that holds them."""
        n, size = self.n, self.size
        ping = n.scratch((size,), dtype)
        with n.loop(size) as i:
            n.store(ping, [i], key(i))
        return self.ordered(ping, None if self.short else n.scratch((size,), dtype), 8 * dtype.itemsize, 0)

    def by(self, key: Callable[[Any], Any], width: int) -> None:
        """Reorders the positions stably by `key(position)`, an unsigned integer of `width` bits."""
        if width <= 32:
            self._by_packed(key, width)
        else:
            self._by_wide(key, width)

    def _by_packed(self, key: Callable[[Any], Any], width: int) -> None:
        """Keys of up to 32 bits share a word with the positions."""
        b, n, size = self.b, self.n, self.size
        if self.ping is None:
            self.ping = n.scratch((size,), UINT64)
            self.pong = None if self.short else n.scratch((size,), UINT64)
        first = self.reader is None
        low = b.const(0xFFFFFFFF, UINT64)
        if not first:
            # positions so far, freed from the buffer that is filled anew
            if self.order is None:
                self.order = n.scratch((size,), UINT32)
            with n.loop(size) as i:
                n.store(self.order, [i], b.cast(self.position(i), UINT32))
            before = self.order
        with n.loop(size) as i:
            at = i if first else b.cast(n.load(before, [i]), INDEX)
            word = b.or_(b.shl(b.cast(key(at), UINT64), b.const(32, UINT64)), b.cast(i, UINT64))
            n.store(self.ping, [i], word)
        result = self.ordered(self.ping, self.pong, width, 32)
        if result is self.pong:
            self.ping, self.pong = self.pong, self.ping
        place = lambda i: b.cast(b.and_(result.at([i]), low), INDEX)
        self.reader = place if first else lambda i: b.cast(before.at([place(i)]), INDEX)
        if not first:
            # settle, so that a later key can reuse the buffers
            settled = n.scratch((size,), UINT32)
            with n.loop(size) as i:
                n.store(settled, [i], b.cast(self.reader(i), UINT32))
            self.reader = lambda i: b.cast(settled.at([i]), INDEX)

    def ordered(self, words: Any, spare: Any, width: int, base: int) -> Any:
        """Sorts words by the `width` bits above bit `base`. Returns the buffer that holds them. Of rows whose length is
        known only when the program runs, short ones are not sorted by digits, whose counts would take most of the
        time."""
        if self.short:
            self._insert(words)
            return words
        passes = self._digits(width)
        if isinstance(self.size, int):
            return self._radix(words, spare, passes, base)
        b, n, result = self.b, self.n, spare if len(passes) % 2 else words
        self._places_of_counts(passes)  # scratch memory of a branch would be gone for the next key
        with n.if_(b.le(b.index(self.size), b.index(_FEW))):
            self._insert(words)
            if result is spare:
                with n.loop(self.size) as i:
                    n.store(spare, [i], n.load(words, [i]))
        with n.else_():
            self._radix(words, spare, passes, base)
        return result

    def _pairs(self) -> Any:
        """How many neighbours a row has."""
        return max(self.size - 1, 0) if isinstance(self.size, int) else self.b.isub(self.b.index(self.size), 1)

    def _insert(self, words: Any) -> None:
        """Insertion sort of words that are all different."""
        b, n = self.b, self.n
        with n.loop(self._pairs()) as k:
            i = b.add(k, b.index(1))
            word = n.load(words, [i])
            insert_word(b, n, words, word, i)

    def _count(self, source: Any, passes: Sequence[tuple[int, int]], base: int) -> list[int]:
        """Histograms of all digits in one pass over the words, turned into first places."""
        b, n = self.b, self.n
        *offsets, total = self._places_of_counts(passes)
        with n.loop(total) as i:
            n.store(self.histogram, [i], b.index(0))
        with n.loop(self.size) as i:
            word = n.load(source, [i])
            for (shift, bits), offset in zip(passes, offsets, strict=True):
                slot = b.add(self._digit(word, base + shift, bits), b.index(offset))
                n.store(self.histogram, [slot], b.add(n.load(self.histogram, [slot]), b.index(1)))
        for (_, bits), offset in zip(passes, offsets, strict=True):
            running = n.var(INDEX, b.index(0))
            with n.loop(1 << bits) as i:
                slot = b.add(i, b.index(offset))
                count = n.load(self.histogram, [slot])
                start = running.get()
                n.store(self.histogram, [slot], start)
                running.set(b.add(start, count))
        return offsets

    def _places_of_counts(self, passes: Sequence[tuple[int, int]]) -> list[int]:
        """Where the counts of each pass begin in `histogram`, and how many there are of all, for which there is room
        from here on."""
        places = list(accumulate((1 << bits for _, bits in passes), initial=0))
        if self.histogram is None or self.histogram.shape[0] < places[-1]:
            self.histogram = self.n.scratch((places[-1],), INDEX)
        return places

    def _digit(self, word: Any, shift: int, bits: int) -> Any:
        b = self.b
        moved = b.shr_logical(word, b.const(shift, word.dtype)) if shift else word
        return b.cast(b.and_(moved, b.const((1 << bits) - 1, word.dtype)), INDEX)

    def _radix(self, source: Any, target: Any, passes: Sequence[tuple[int, int]], base: int) -> Any:
        """Sorts words by the digits above bit `base`. Returns the buffer that holds the result."""
        b, n = self.b, self.n
        offsets = self._count(source, passes, base)
        for (shift, bits), offset in zip(passes, offsets, strict=True):
            with n.loop(self.size) as i:
                word = n.load(source, [i])
                slot = b.add(self._digit(word, base + shift, bits), b.index(offset))
                place = n.load(self.histogram, [slot])
                n.store(self.histogram, [slot], b.add(place, b.index(1)))
                n.store(target, [place], word)
            source, target = target, source
        return source

    def _by_wide(self, key: Callable[[Any], Any], width: int) -> None:
        """Keys of 64 bits: words and positions in arrays of their own."""
        b, n, size = self.b, self.n, self.size
        words, spare = n.scratch((size,), UINT64), n.scratch((size,), UINT64)
        places, spare_places = n.scratch((size,), UINT32), n.scratch((size,), UINT32)
        with n.loop(size) as i:
            at = self.position(i)
            n.store(words, [i], key(at))
            n.store(places, [i], b.cast(at, UINT32))
        if self.short:
            self._insert_wide(words, places)
        else:
            passes = self._digits(width)
            offsets = self._count(words, passes, 0)
            for (shift, bits), offset in zip(passes, offsets, strict=True):
                with n.loop(size) as i:
                    word = n.load(words, [i])
                    slot = b.add(self._digit(word, shift, bits), b.index(offset))
                    place = n.load(self.histogram, [slot])
                    n.store(self.histogram, [slot], b.add(place, b.index(1)))
                    n.store(spare, [place], word)
                    n.store(spare_places, [place], n.load(places, [i]))
                words, spare = spare, words
                places, spare_places = spare_places, places
        self.reader = lambda i: b.cast(places.at([i]), INDEX)

    def _insert_wide(self, words: Any, places: Any) -> None:
        b, n = self.b, self.n
        with n.loop(self._pairs()) as k:
            i = b.add(k, b.index(1))
            word, place = n.load(words, [i]), n.load(places, [i])
            j = n.var(INDEX, i)
            going = n.var(np.bool_, b.const(True, np.bool_))
            with n.while_(lambda: b.and_(going.get(), b.gt(j.get(), b.index(0)))):
                here = j.get()
                below = b.sub(here, b.index(1))
                previous = n.load(words, [below])
                with n.if_(b.gt(previous, word)):
                    n.store(words, [here], previous)
                    n.store(places, [here], n.load(places, [below]))
                    j.set(below)
                with n.else_():
                    going.set(b.const(False, np.bool_))
            n.store(words, [j.get()], word)
            n.store(places, [j.get()], place)


def each_row(n: Any, shape: Sequence[Any], axis: int, body: Callable[[Callable[[Any], list[Any]]], None]) -> None:
    """Loops over the rows along an axis; `body` gets the function from a place in the row to an index."""
    outer: list[Any] = []

    def nested(remaining: list[int]) -> None:
        if not remaining:
            fixed = dict(outer)
            body(lambda i: [i if d == axis else fixed[d] for d in range(len(shape))])
            return
        with n.loop(shape[remaining[0]], parallel=True) as i:
            outer.append((remaining[0], i))
            nested(remaining[1:])
            outer.pop()

    nested([d for d in range(len(shape)) if d != axis])


def is_cheap(value: Any) -> bool:
    """Whether elements cost no more to compute, at any place, than to read."""
    return getattr(value, "cost", 0) <= 4 and not getattr(value, "divides", False)


def insert_word(b: Builder, n: Any, words: Any, new: Any, last: Any) -> None:
    """Puts a word into the sorted ones below position `last`, whose own word goes."""
    j = n.var(INDEX, last)
    going = n.var(np.bool_, b.const(True, np.bool_))
    with n.while_(lambda: b.and_(going.get(), b.gt(j.get(), b.index(0)))):
        here = j.get()
        previous = n.load(words, [b.sub(here, b.index(1))])
        with n.if_(b.gt(previous, new)):
            n.store(words, [here], previous)
            j.set(b.sub(here, b.index(1)))
        with n.else_():
            going.set(b.const(False, np.bool_))
    n.store(words, [j.get()], new)


def candidates_block(size: int, k: int) -> int:
    """How many neighbours of a row stand for one another where its `k` smallest elements are chosen: 0 where it takes
    less to sort all."""
    return next((block for block in (64, 32, 16) if size // block >= 2 * k), 0)


def select_smallest(b: Builder, n: Any, size: int, k: int, key: Callable[[Any], Any], width: int) -> Any:
    """Words (key, position) of a row in a scratch buffer, of which the first `k` are the smallest, sorted. Keys have
    `width` bits, up to 32.

    They are all in the `k` blocks whose own smallest elements are the smallest, those before others where they are
    equal: each of these blocks has an element that comes before any of another block. What is sorted are the smallest
    of blocks, and what is no larger than the `k`-th of them.
    """
    block = candidates_block(size, k)
    blocks = size // block
    largest = b.const((1 << width) - 1, key(b.index(0)).dtype)

    def word(bits: Any, i: Any) -> Any:
        return b.or_(b.shl(b.cast(bits, UINT64), b.const(32, UINT64)), b.cast(i, UINT64))

    least, ping, pong = (n.scratch((blocks,), UINT64) for _ in range(3))
    with n.loop(blocks) as j:
        start = b.mul(j, b.index(block))
        found = n.let(word(n.smallest(block, lambda i: key(b.add(start, i)), largest), j))
        n.store(least, [j], found)
        n.store(ping, [j], found)
    last = n.let(n.load(RowSorter(b, n, blocks).ordered(ping, pong, width, 32), [b.index(k - 1)]))
    limit = n.let(b.cast(b.shr_logical(last, b.const(32, UINT64)), largest.dtype))
    room = (k * block + size % block,)
    words, spare, count = n.scratch(room, UINT64), n.scratch(room, UINT64), n.var(INDEX, b.index(0))

    def take(start: Any, number: int) -> None:
        with n.loop(number) as i:
            place = b.add(start, i)
            bits = n.let(key(place))
            with n.if_(b.le(bits, limit)):
                n.store(words, [count.get()], word(bits, place))
                count.set(b.add(count.get(), b.index(1)))

    with n.loop(blocks) as j, n.if_(b.le(n.load(least, [j]), last)):
        take(b.mul(j, b.index(block)), block)
    take(b.index(blocks * block), size % block)
    return RowSorter(b, n, n.let(count.get())).ordered(words, spare, width, 32)


_BLOCK = 64  # elements that are looked at together: hardly any of them is among the smallest so far


def keep_smallest(b: Builder, n: Any, size: int, k: int, key: Callable[[Any], Any]) -> Any:
    """The `k` smallest words (key, position) of a row, sorted, in a scratch buffer. Keys have up to 32 bits."""
    best = n.scratch((k,), UINT64)

    def word(i: Any) -> Any:
        return b.or_(b.shl(b.cast(key(i), UINT64), b.const(32, UINT64)), b.cast(i, UINT64))

    with n.loop(k) as i:
        insert_word(b, n, best, n.let(word(i)), i)
    worst = n.var(UINT64, n.load(best, [b.index(k - 1)]))

    left = size - k
    with n.loop(-(-left // _BLOCK)) as block:
        first = b.add(b.mul(block, b.index(_BLOCK)), b.index(k))
        count = b.min(b.index(_BLOCK), b.sub(b.index(size), first))
        bits = key(first).dtype
        least = n.smallest(count, lambda i: key(b.add(i, first)), b.const(dtypes.iinfo(bits).max, bits))
        # of equal keys the first stay
        with n.if_(b.lt(b.cast(least, UINT64), b.shr_logical(worst.get(), b.const(32, UINT64)))), n.loop(count) as i:
            new = n.let(word(b.add(i, first)))
            with n.if_(b.lt(new, worst.get())):
                insert_word(b, n, best, new, b.index(k - 1))
                worst.set(n.load(best, [b.index(k - 1)]))
    return best
