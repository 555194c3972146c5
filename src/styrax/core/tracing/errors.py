"""Exceptions: JAX's classes, with messages that say what happened, where, and what to do instead."""

from __future__ import annotations

from typing import Any


def _with_page(error: Exception, message: Any) -> str:
    """A message that names the page about errors of this class."""
    page = f"See https://docs.jax.dev/en/latest/errors.html#jax.errors.{type(error).__name__}"
    return str(message) if page in str(message) else f"{message}\n{page}"


class JAXTypeError(TypeError):
    """A value of a kind that the operation cannot work with while a function is being traced."""

    def __init__(self, message: Any = ""):
        super().__init__(_with_page(self, message))


class JAXIndexError(IndexError):
    """An index that cannot be used while a function is being traced."""

    def __init__(self, message: Any = ""):
        super().__init__(_with_page(self, message))


def _type_of(tracer: Any) -> str:
    aval = getattr(tracer, "aval", None)
    return repr(tracer) if aval is None else aval.str_short(short_dtypes=False)


def _describe(tracer: Any) -> str:
    return f"traced array with shape {_type_of(tracer)}"


def origin(tracer: Any) -> str:
    """Where a tracer comes from, as a further line of a message."""
    told = getattr(tracer, "origin", None) or getattr(tracer, "_origin_msg", None)
    text = told() if told is not None else ""
    return f"\n{text}" if text else ""


def _user_line() -> str:
    from . import source

    line = source.current_line()
    return f"\nThe value was needed at {line}" if line else ""


class ConcretizationTypeError(JAXTypeError):
    """The value of an array was needed while only its shape and dtype are known.

    Inside ``jit``, ``scan`` and the like a function runs once on tracers, which stand for arrays of any
    values. What must be known then (shapes, Python control flow, ``float(x)``) cannot depend on them: mark
    such an argument static (``static_argnums``), or use ``jnp.where``, ``lax.cond``, ``lax.while_loop``.
    """

    def __init__(self, tracer: Any, context: str = ""):
        self.tracer = tracer
        super().__init__(
            f"Abstract tracer value encountered where concrete value is expected: {_describe(tracer)}\n"
            f"{context}{origin(tracer)}{_user_line()}\n"
            "While a function is traced, arrays have a shape and a dtype but no values. If the value is an "
            "argument that changes rarely, make it static (static_argnums or static_argnames of jit); "
            "otherwise compute with it on arrays."
        )


class NonConcreteBooleanIndexError(JAXIndexError):
    """A boolean mask was used as an index while its values are unknown.

    The shape of ``x[mask]`` depends on how many elements of the mask are true, and shapes must be known
    while tracing. ``jnp.where(mask, x, other)`` and ``jnp.nonzero(mask, size=n)`` have known shapes.
    """

    def __init__(self, tracer: Any):
        self.tracer = tracer
        super().__init__(
            f"Array boolean indices must be concrete; got {_type_of(tracer)}{origin(tracer)}{_user_line()}\n"
            "The shape of x[mask] depends on the values of the mask. jnp.where(mask, x, other) has a known "
            "shape, and so has jnp.nonzero(mask, size=n)."
        )


class TracerArrayConversionError(JAXTypeError):
    """NumPy asked a tracer for its values.

    NumPy functions need values and a tracer has none yet: use the ``jax.numpy`` function of the same name,
    or ``pure_callback`` to call NumPy when the program runs.
    """

    def __init__(self, tracer: Any):
        self.tracer = tracer
        super().__init__(
            f"The numpy.ndarray conversion method __array__() was called on {_describe(tracer)}"
            f"{origin(tracer)}{_user_line()}\n"
            "NumPy cannot work on arrays that are being traced: use the function of jax.numpy, or "
            "jax.pure_callback for code that must run in NumPy."
        )


class TracerIntegerConversionError(JAXTypeError):
    """A tracer was used where Python needs an integer, such as an index into a list or a size."""

    def __init__(self, tracer: Any):
        self.tracer = tracer
        super().__init__(
            f"The __index__() method was called on {_describe(tracer)}{origin(tracer)}{_user_line()}\n"
            "Python needs an integer here (an index of a list, a range, a shape), but the value is known "
            "only when the program runs: make the argument static, or index a jnp.array instead of a list."
        )


class TracerBoolConversionError(ConcretizationTypeError):
    """``if``, ``while``, ``and``, ``or``, ``not`` or ``assert`` needed the truth of a tracer.

    Use ``lax.cond``, ``lax.while_loop``, ``jnp.where``, ``&``, ``|``, ``~`` or ``checkify``.
    """

    def __init__(self, tracer: Any):
        JAXTypeError.__init__(
            self,
            f"Attempted boolean conversion of {_describe(tracer)}.{origin(tracer)}{_user_line()}\n"
            "Python's if, while, and, or, not and assert need to know whether the value is true, and while a "
            "function is traced that is not known: use jnp.where, jax.lax.cond or jax.lax.while_loop, the "
            "operators & | ~, or make the argument static.",
        )
        self.tracer = tracer


class UnexpectedTracerError(JAXTypeError):
    """A tracer was used after the transformation that made it had ended, or by another one.

    The function being transformed had a side effect: it stored a value in a global, an attribute, a list
    or a generator instead of returning it.
    """


class CustomVJPException(Exception):
    """A ``custom_vjp`` function was differentiated with respect to a value that it closes over."""

    def __init__(self) -> None:
        super().__init__(
            "Detected differentiation of a custom_vjp function with respect to a closed-over value. That isn't "
            "supported because the custom VJP rule only specifies how to differentiate the custom_vjp function with "
            "respect to explicit input parameters. Pass the closed-over value into the custom_vjp function as an "
            "argument, and adapt its fwd and bwd rules.")


class KeyReuseError(JAXTypeError):
    """A random key was used twice, which gives the same random numbers twice; ``split`` it."""


class JaxprTypeError(TypeError):
    """A jaxpr is not well formed: a variable out of scope, or a type that does not fit."""


class JaxRuntimeError(RuntimeError):
    """A compiled program, or the runtime that runs it, failed."""


XlaRuntimeError = JaxRuntimeError


class OutOfMemory(JaxRuntimeError, MemoryError):
    """The memory for an array cannot be had."""


class CallFailed(JaxRuntimeError):
    """A function that a program called failed, and this says how."""


def callback_failed(error: BaseException) -> JaxRuntimeError:
    """What a program raises when a Python function that it called raised `error`."""
    if isinstance(error, CallFailed):
        return JaxRuntimeError(str(error))
    import traceback

    from . import source

    kept = source.filter_traceback(error.__traceback__) if source.filtering() else error.__traceback__
    text = "".join(traceback.format_exception(type(error), error, kept))
    return JaxRuntimeError(f"INTERNAL: CpuCallback error calling callback: {text}")


class InconclusiveDimensionOperation(Exception):
    """A question about symbolic dimensions has different answers for different values."""


class ShardingTypeError(Exception):
    """The shardings of the operands do not fit the operation."""


__all__ = [
    "ConcretizationTypeError",
    "CustomVJPException",
    "InconclusiveDimensionOperation",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "JaxprTypeError",
    "KeyReuseError",
    "NonConcreteBooleanIndexError",
    "ShardingTypeError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
    "XlaRuntimeError",
]

# Programs find them in `styrax.errors`, and tracebacks say so.
for _error in (ConcretizationTypeError, InconclusiveDimensionOperation, JAXIndexError, JAXTypeError, JaxRuntimeError,
               JaxprTypeError, KeyReuseError, NonConcreteBooleanIndexError, TracerArrayConversionError,
               TracerBoolConversionError, TracerIntegerConversionError, UnexpectedTracerError):
    _error.__module__ = "styrax.errors"
