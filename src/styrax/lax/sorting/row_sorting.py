"""Sorting the rows of an array on the CPU: keys as unsigned integers, radix and insertion sort of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

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


class Digits(NamedTuple):
    """The passes of a radix sort: how many, and the bits that each looks at."""

    passes: int
    bits: int

    @property
    def bins(self) -> int:
        """Different digits of one pass."""
        return 1 << self.bits

    def end(self, half: Any) -> Any:
        """Where the words begin after all passes, if the second half of their buffer begins at `half`."""
        return half if self.passes % 2 else 0


class RowSorter:
    """Writes the statements that order the positions of one row, of at least so many elements.

    After `by` for each key, from the last to the first, `position(i)` is the place in the row of the
    element that comes `i`-th.

    Words that digits sort lie in the first or the second half of a buffer: each pass of a radix sort moves them from
    one to the other, and all passes are one loop.
    """

    def __init__(self, b: Any, n: Any, size: Any, least: int = 0):
        self.b = b
        self.n = n
        self.size = size
        self.least = least
        self.short = isinstance(size, int) and size <= _INSERTION
        self.order: Any = None  # scratch of positions after the first key
        self.words: Any = None
        self.histogram: Any = None
        self.reader: Callable[[Any], Any] | None = None

    # The digits are those of the key; positions travel along.
    def _digits(self, width: int) -> Digits:
        """Those of keys of `width` bits."""
        bits = min(width, 8 if width <= 16 or isinstance(self.size, int) and self.size < 4096 else 11)
        return Digits(-(-width // bits), bits)

    def position(self, i: Any) -> Any:
        b = self.b
        if self.reader is None:
            return i
        return b.cast(self.reader(i), INDEX)

    def _halves(self, dtype: Any) -> Any:
        """Memory for the words of a row, twice where digits sort them."""
        return self.n.scratch((self.size if self.short else self.b.product([2, self.size]),), dtype)

    def values(self, key: Callable[[Any], Any], dtype: Any) -> Callable[[Any], Any]:
        """Sorts unsigned integers `key(place)` alone. Returns the function that reads the i-th."""
        n, words = self.n, self._halves(dtype)
        with n.loop(self.size) as i:
            n.store(words, [i], key(i))
        start = self.ordered(words, self.size, 8 * dtype.itemsize, 0)
        return lambda i: words.at([self.b.add(i, start)])

    def by(self, key: Callable[[Any], Any], width: int) -> None:
        """Reorders the positions stably by `key(position)`, an unsigned integer of `width` bits."""
        if width <= 32:
            self._by_packed(key, width)
        else:
            self._by_wide(key, width)

    def _by_packed(self, key: Callable[[Any], Any], width: int) -> None:
        """Keys of up to 32 bits share a word with the positions."""
        b, n, size = self.b, self.n, self.size
        if self.words is None:
            self.words = self._halves(UINT64)
        words, first = self.words, self.reader is None
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
            n.store(words, [i], word)
        start = self.ordered(words, size, width, 32)
        place = lambda i: b.cast(b.and_(words.at([b.add(i, start)]), low), INDEX)
        self.reader = place if first else lambda i: b.cast(before.at([place(i)]), INDEX)
        if not first:
            # settle, so that a later key can reuse the buffers
            settled = n.scratch((size,), UINT32)
            with n.loop(size) as i:
                n.store(settled, [i], b.cast(self.reader(i), UINT32))
            self.reader = lambda i: b.cast(settled.at([i]), INDEX)

    def ordered(self, words: Any, half: Any, width: int, base: int) -> Any:
        """Sorts words by the `width` bits above bit `base`. The second half of their buffer begins at `half`. Returns
        where the sorted ones begin. Of rows whose length is known only when the program runs, short ones are not sorted
        by digits, whose counts would take most of the time."""
        b, n, digits = self.b, self.n, self._digits(width)
        start = b.index(digits.end(half))
        if self.short:
            self._insert(words)
            return b.index(0)
        if isinstance(self.size, int) or self.least > _FEW:
            self._radix(words, half, digits, base)
            return start
        self._count_places(digits)  # scratch memory of a branch would be gone for the next key
        with n.if_(b.le(b.index(self.size), b.index(_FEW))):
            self._insert(words)
            if digits.passes % 2:
                with n.loop(self.size) as i:
                    n.store(words, [b.add(i, start)], n.load(words, [i]))
        with n.else_():
            self._radix(words, half, digits, base)
        return start

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

    def _count_places(self, digits: Digits) -> int:
        """How many counts all passes take, for which there is room in `histogram` from here on."""
        total = digits.passes * digits.bins
        if self.histogram is None or self.histogram.shape[0] < total:
            self.histogram = self.n.scratch((total,), INDEX)
        return total

    def _count(self, source: Any, digits: Digits, base: int) -> None:
        """Histograms of all digits in one pass over the words, turned into first places."""
        b, n = self.b, self.n
        with n.loop(self._count_places(digits)) as i:
            n.store(self.histogram, [i], b.index(0))
        with n.loop(self.size) as i:
            word = n.load(source, [i])
            for p in range(digits.passes):
                slot = self._slot(word, b.index(p), digits, base)
                n.store(self.histogram, [slot], b.add(n.load(self.histogram, [slot]), b.index(1)))
        with n.loop(digits.passes) as p:
            running = n.var(INDEX, b.index(0))
            with n.loop(digits.bins) as i:
                slot = b.add(i, b.imul(p, digits.bins))
                count = n.load(self.histogram, [slot])
                start = running.get()
                n.store(self.histogram, [slot], start)
                running.set(b.add(start, count))

    def _slot(self, word: Any, p: Any, digits: Digits, base: int) -> Any:
        """Where the counts have a word's digit of a pass."""
        b = self.b
        shift = b.cast(b.iadd(b.imul(p, digits.bits), base), word.dtype)
        digit = b.and_(b.shr_logical(word, shift), b.const(digits.bins - 1, word.dtype))
        return b.add(b.cast(digit, INDEX), b.imul(p, digits.bins))

    def _radix(self, words: Any, half: Any, digits: Digits, base: int, *others: Any) -> None:
        """Sorts words by the digits above bit `base`, and with them the elements of other such buffers."""
        b, n = self.b, self.n
        self._count(words, digits, base)
        with n.loop(digits.passes) as p:
            odd = b.floormod(p, 2)
            source, target = b.imul(odd, half), b.imul(b.isub(1, odd), half)
            with n.loop(self.size) as i:
                word = n.load(words, [b.add(i, source)])
                slot = self._slot(word, p, digits, base)
                place = n.load(self.histogram, [slot])
                n.store(self.histogram, [slot], b.add(place, b.index(1)))
                n.store(words, [b.add(place, target)], word)
                for other in others:
                    n.store(other, [b.add(place, target)], n.load(other, [b.add(i, source)]))

    def _by_wide(self, key: Callable[[Any], Any], width: int) -> None:
        """Keys of 64 bits: words and positions in arrays of their own."""
        b, n, size = self.b, self.n, self.size
        words, places = self._halves(UINT64), self._halves(UINT32)
        with n.loop(size) as i:
            at = self.position(i)
            n.store(words, [i], key(at))
            n.store(places, [i], b.cast(at, UINT32))
        if self.short:
            self._insert_wide(words, places)
            start = 0
        else:
            digits = self._digits(width)
            self._radix(words, size, digits, 0, places)
            start = digits.end(size)
        self.reader = lambda i: b.cast(places.at([b.add(i, b.index(start))]), INDEX)

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


def select_smallest(b: Builder, n: Any, size: int, k: int, key: Callable[[Any], Any], width: int
                    ) -> Callable[[Any], Any]:
    """The function that reads the i-th smallest word (key, position) of a row, for i < `k`. Keys have `width` bits, up
    to 32.

    They are all in the `k` blocks whose own smallest elements are the smallest, those before others where they are
    equal: each of these blocks has an element that comes before any of another block. What is sorted are the smallest
    of blocks, and what is no larger than the `k`-th of them.
    """
    block = candidates_block(size, k)
    blocks = size // block
    largest = b.const((1 << width) - 1, key(b.index(0)).dtype)

    def word(bits: Any, i: Any) -> Any:
        return b.or_(b.shl(b.cast(bits, UINT64), b.const(32, UINT64)), b.cast(i, UINT64))

    least, ordered = n.scratch((blocks,), UINT64), n.scratch((2 * blocks,), UINT64)
    with n.loop(blocks) as j:
        start = b.mul(j, b.index(block))
        found = n.let(word(n.smallest(block, lambda i: key(b.add(start, i)), largest), j))
        n.store(least, [j], found)
        n.store(ordered, [j], found)
    start = RowSorter(b, n, blocks).ordered(ordered, blocks, width, 32)
    last = n.let(n.load(ordered, [b.add(start, b.index(k - 1))]))
    limit = n.let(b.cast(b.shr_logical(last, b.const(32, UINT64)), largest.dtype))
    room = k * block + size % block
    words, count = n.scratch((2 * room,), UINT64), n.var(INDEX, b.index(0))

    def take(start: Any, number: int) -> None:
        with n.loop(number) as i:
            place = b.add(start, i)
            bits = n.let(key(place))
            with n.if_(b.le(bits, limit)):
                n.store(words, [count.get()], word(bits, place))
                count.set(b.add(count.get(), b.index(1)))

    with n.loop(blocks) as j, n.if_(b.le(n.load(least, [j]), last)):
        take(b.mul(j, b.index(block)), block)
    if size % block:
        take(b.index(blocks * block), size % block)
    chosen = n.let(b.min(count.get(), b.index(room)))  # (which says how many there are at most)
    start = RowSorter(b, n, chosen, least=k).ordered(words, room, width, 32)
    return lambda i: words.at([b.add(i, start)])


_BLOCK = 64  # elements that are looked at together: hardly any of them is among the smallest so far


def keep_smallest(b: Builder, n: Any, size: int, k: int, key: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function that reads the i-th smallest word (key, position) of a row, for i < `k`. Keys have up to 32 bits."""
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
    return lambda i: best.at([i])
