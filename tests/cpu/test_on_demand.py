"""Functions that programs call: each is compiled once, whoever asks and however many at once."""

import ctypes
import os
import sys
import threading
import time

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.compile.ir.loopir import Call, statements
from styrax.compile.pipeline import compile_to_loops
from styrax.compile.program import Kernels
from styrax.cpu import ahead, llvm, microkernels
from styrax.cpu.on_demand import Family

COUNT = 6


@pytest.fixture
def family(monkeypatch):
    """A family of functions that give a number, and the names of which a text was asked for."""
    asked = []

    def source(symbol):
        asked.append(symbol)
        time.sleep(0.01)
        number = symbol.rpartition("_")[2]
        if number == "wrong":
            return "define nothing"
        if not number.isdigit():
            return None
        return f"define i32 @{symbol}() {{\n  ret i32 {number}\n}}"

    monkeypatch.setattr(llvm, "add_resolver", lambda *_, **__: None)
    return Family(f"answer{time.monotonic_ns()}", source), asked


def names(family):
    return [f"{family._prefix}{i}" for i in range(COUNT)]


def call(address):
    return ctypes.CFUNCTYPE(ctypes.c_int32)(address)()


@pytest.mark.parametrize("threads", [1, 3])
def test_each_is_compiled_once_by_many(family, threads):
    family, asked = family
    symbols = names(family)
    family.compile_ahead(set(symbols), 1, threads)
    found = [[] for _ in range(4)]

    def ask(into):
        into += [call(family.address(symbol)) for symbol in symbols]

    workers = [threading.Thread(target=ask, args=(into,)) for into in found]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [list(range(COUNT))] * 4
    assert sorted(asked) == symbols
    family.compile_ahead(set(symbols), 1, threads)
    assert sorted(asked) == symbols


def test_turns_of_threads_are_short_meanwhile(family):
    family, _ = family
    while ahead._working:  # for a test before
        time.sleep(0.001)
    usual = sys.getswitchinterval()
    try:
        for own in (None, 0.25):  # what somebody sets meanwhile stays
            seen = []
            texts = family._source
            family._source = lambda symbol, seen=seen, texts=texts, own=own: (
                seen.append(sys.getswitchinterval()), own and sys.setswitchinterval(own), texts(symbol))[-1]
            family.compile_ahead({f"{family._prefix}{100 if own else 200}"}, 1, 1)
            while ahead._working:
                time.sleep(0.001)
            family._source = texts
            assert seen[0] < usual
            assert sys.getswitchinterval() == (own or usual)
            sys.setswitchinterval(usual)
    finally:
        sys.setswitchinterval(usual)


def test_no_function_of_the_family(family):
    family, _ = family
    assert family.address("something_else") is None
    assert family.address(f"{family._prefix}none") is None


def test_a_text_that_llvm_refuses(family):
    family, _ = family
    wrong = f"{family._prefix}wrong"
    family.compile_ahead({wrong, names(family)[0]}, 1, 1)
    for _ in range(2):  # whoever asks is told, each time
        with pytest.raises(llvm.CompileError):
            family.address(wrong)
    assert call(family.address(names(family)[1])) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_in_a_forked_child(family):
    family, _ = family
    symbols = names(family)
    family.compile_ahead(set(symbols), 1, 1)
    child = os.fork()
    if not child:
        os._exit(0 if [call(family.address(s)) for s in symbols] == list(range(COUNT)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert call(family.address(symbols[-1])) == COUNT - 1


CALLING = {
    "product": lambda x: x @ x,
    "of integers": lambda x: x.astype("int8") @ x.astype("int8"),
    "transform": jnp.fft.fft,
    "to real numbers": jnp.fft.irfft,
    "convolution": lambda x: jax.lax.conv(x[:16].reshape(2, 16, 16, 16), x[:64, :16, None, None], (1, 1), "SAME"),
}


@pytest.mark.parametrize("name", CALLING)
def test_what_is_called_is_begun_when_it_is_known(name):
    begun = {}
    closed = jax.make_jaxpr(CALLING[name])(np.zeros((512, 512), np.float32))
    kernels = Kernels(panels=microkernels.kernels(), begin=lambda symbol, work: begun.setdefault(symbol, work))
    lowered = compile_to_loops(closed, "program", (), 32, False, kernels)
    called = {s.symbol for s in statements(lowered.statements) if isinstance(s, Call)}
    assert called <= set(begun) and (called or name == "convolution")
    if name == "of integers":  # the instructions of all calls, in numbers of 64 bytes
        assert {symbol: begun[symbol] for symbol in called} == {
            symbol: 512**3 / (64 if symbol.startswith("panels_i8") else 32) for symbol in called}
