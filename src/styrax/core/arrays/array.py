"""`Array`: an immutable array in a device's memory.

NumPy's methods and operators, which `Tracer` has as well, are functions of `styrax.numpy` (`hooks.METHODS`). A buffer
is whatever a backend keeps: see `Buffer`.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .. import hooks
from ..programs.named import named
from ..tracing.source import hide_frames
from ..tracing.trace import Tracer
from ..types import dtypes
from ..types.avals import AbstractRef, AbstractToken, ShapedArray, aval_rules, shaped
from . import by_device, transfers
from .devices import only_on, together
from .explicit import is_unsummed, on_devices, sharding_of_type
from .tokens import Token

if TYPE_CHECKING:
    from .array_methods import ArrayMethods
else:
    ArrayMethods = object


class Buffer(Protocol):
    """Memory that holds an array's elements in row-major order."""

    address: int
    nbytes: int
    device: Any

    def wait(self) -> None: ...

    def ready(self) -> bool: ...

    def on(self, device: Any) -> Buffer:
        """The same memory as another device of the platform has it."""

    def numpy(self, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray: ...


class _ArrayMeta(type):
    """`isinstance(x, jax.Array)` holds for tracers of arrays, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        kind = type(instance)
        if kind is Array or issubclass(kind, Tracer) and not instance.is_ref():
            return True
        return type.__instancecheck__(cls, instance)


class Array(ArrayMethods, metaclass=_ArrayMeta):
    """An array of numbers: `shape`, `dtype`, and NumPy's methods and operators.

    Arrays are made by functions of `styrax.numpy`; they cannot be changed in place (`x.at[i].set(y)`
    gives a changed copy).
    """

    __slots__ = ("aval", "buffer", "committed", "_numpy", "_sharding", "__weakref__")
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    aval: ShapedArray
    buffer: Any
    _sharding: Any  # unset where nobody has said anything

    def __init__(self, aval: ShapedArray, buffer: Any, committed: bool = False):
        self.aval = aval
        self.buffer = buffer
        self.committed = committed
        self._numpy: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        return self.aval.dtype

    @property
    def _committed(self) -> bool:  # as libraries that save arrays ask for it
        return self.committed

    @property
    def __numpy_dtype__(self) -> np.dtype:
        warnings.warn("Implicit conversion of an array to a dtype is deprecated; rather than dtype=arr use "
                      "dtype=arr.dtype. In the future this will result in an error.", DeprecationWarning, stacklevel=2)
        return self.dtype

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        return self.aval.weak_type

    @property
    def itemsize(self) -> int:
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.aval.size * self.aval.dtype.itemsize

    # -- where it lives ------------------------------------------------------------------------
    @property
    def device(self) -> Any:
        """The device that the array is on; its sharding where there are several."""
        return self.sharding if self._is_spread() else self._live().device

    def devices(self) -> set[Any]:
        return set(self._sharding.device_set) if self._is_spread() else {self._live().device}

    def _is_spread(self) -> bool:
        """Whether it is on several devices."""
        try:
            return self._sharding.num_devices > 1
        except AttributeError:
            return False

    @property
    def sharding(self) -> Any:
        try:
            return self._sharding
        except AttributeError:  # nobody has said anything
            if self.aval.given_sharding is not None:
                return on_devices(self.aval.given_sharding, self._live().device)
            return only_on(self.device)

    @property
    def format(self) -> Any:
        """The order of the dimensions in memory, which is by rows, and the sharding."""
        from .layouts import Format, Layout

        return Format(Layout(tuple(range(self.ndim)), (), 0), self.sharding)

    @property
    def traceback(self) -> None:
        """Where the array was made; nobody notes it."""
        return None

    @property
    def device_buffer(self) -> Any:
        """The array on its one device, by a name that JAX has removed."""
        return hooks.device_buffer(self)

    @property
    def device_buffers(self) -> list[Any]:
        """The array on each of its devices, by a name that JAX has removed."""
        return hooks.device_buffers(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory as libraries for NVIDIA's GPUs describe it to each other, version 2 of their interface."""
        if self._is_spread() or self._live().device.client.dlpack_type != 2:
            raise AttributeError("__cuda_array_interface__ is only defined for GPU buffers.")
        if self.dtype.isbuiltin != 1:
            raise AttributeError(f"__cuda_array_interface__ is not supported for {self.dtype} buffers.")
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.unsafe_buffer_pointer(), False),
                "version": 2}

    def placed(self, sharding: Any) -> Array:
        """The same array, committed to a sharding (None: the device where it lives)."""
        aval = self.aval
        told = None if sharding is None else sharding_of_type(sharding, aval.shape)
        if is_unsummed(told) or is_unsummed(aval.given_sharding):
            return hooks.resummed(self, sharding)
        if told is not aval.given_sharding:
            aval = aval.update(sharding=told)
        buffer = self._live()
        if sharding is not None:
            devices = sharding._device_assignment
            if (many := together(devices)) is not None:
                return many.put(self, sharding)
            if buffer.device not in devices:
                buffer = hooks.moved(self, devices[0])._live()
        out = type(self)(aval, buffer, committed=True)
        if sharding is not None:
            out._sharding = sharding
        return out

    def _gathered(self) -> Array:
        """The array as one that nobody has spread, if its devices have different parts: rows may cross these."""
        if self.is_fully_replicated or not self.is_fully_addressable or is_unsummed(self.aval.given_sharding):
            return self
        aval = self.aval if self.aval.given_sharding is None else self.aval.update(sharding=None)
        return type(self)(aval, self._live())

    @property
    def is_fully_addressable(self) -> bool:
        return not self._is_spread() or self._sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        return not self._is_spread() or self._sharding.is_fully_replicated

    @property
    def addressable_shards(self) -> list[Any]:
        try:
            self._live()
            return hooks.shards_of(self)
        except Exception as error:
            hide_frames(error)
            raise

    @property
    def global_shards(self) -> list[Any]:
        return hooks.all_shards_of(self)

    def addressable_data(self, index: int) -> Array:
        if not self._is_spread():
            return self
        return self.addressable_shards[0 if self.is_fully_replicated else index].data

    def _fully_replicated_shard(self) -> Array:  # as libraries that save arrays ask for it
        return self.addressable_data(0)

    @property
    def global_shape(self) -> tuple[int, ...]:
        return self.shape

    # -- life of the buffer --------------------------------------------------------------------
    def _live(self) -> Any:
        if self.buffer is None:
            raise RuntimeError(
                f"Array has been deleted with shape={self.aval.str_short(short_dtypes=False)}.\nIt was donated to a "
                "computation or deleted by `delete()`, and cannot be used any more."
            )
        return self.buffer

    @property
    def _npy_value(self) -> np.ndarray | None:  # as libraries ask whether the elements were read
        return self._numpy

    def _check_if_deleted(self) -> None:  # as libraries that hold arrays for long ask
        self._live()

    def is_deleted(self) -> bool:
        return self.buffer is None

    def delete(self) -> None:
        if self.buffer is not None:
            self._sharding = self.sharding  # what is gone still tells where it was
        self.buffer = None
        self._numpy = None

    def is_ready(self) -> bool:
        return self._live().ready()

    def block_until_ready(self) -> Array:
        self._live().wait()
        return self

    def copy_to_host_async(self) -> None:
        self._live()

    def on_device_size_in_bytes(self) -> int:
        return self.nbytes

    def unsafe_buffer_pointer(self) -> int:
        if self._is_spread():
            from ..tracing.errors import JaxRuntimeError

            raise JaxRuntimeError("INVALID_ARGUMENT: UnsafeBufferPointer() is supported only for unsharded arrays.")
        buffer = self._live()
        buffer.wait()
        return buffer.address

    # -- exchange --------------------------------------------------------------------------------
    @property
    def _value(self) -> np.ndarray:
        """The elements as a read-only NumPy array over this array's own memory. NotImplementedError for an array that
        is still to be summed along mesh axes."""
        if self._numpy is None:
            if is_unsummed(self.aval.given_sharding):
                self.sharding.devices_indices_map(self.aval.shape)
            buffer = self._live()
            buffer.wait()
            self._numpy = buffer.numpy(self.aval.dtype, self.aval.shape)
        return self._numpy

    def __array__(self, dtype: Any = None, context: Any = None, copy: bool | None = None) -> np.ndarray:
        value = self._value
        if dtype is not None and np.dtype(dtype) != value.dtype:
            if copy is False:
                raise ValueError("Unable to avoid copy while creating an array as requested.")
            return value.astype(dtype)
        return value.copy() if copy else value

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self._value)  # type: ignore[arg-type]

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: bool | None = None) -> Any:
        from .dlpack import to_capsule

        return to_capsule(self, max_version=max_version, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self._live().device
        if self._is_spread():
            raise BufferError("__dlpack__ only supported for unsharded arrays.")
        kind = device.client.dlpack_type
        return kind, 0 if kind == 1 else device.id  # DLPack knows one CPU

    def __reduce__(self) -> Any:
        return _rebuild, (np.asarray(self), self.aval.weak_type)

    def __copy__(self) -> Array:
        return self

    def __deepcopy__(self, memo: Any) -> Array:
        from . import backends

        if is_unsummed(self.aval.given_sharding):
            return self.copy()
        copied = getattr(self.buffer, "copied", None)  # of memory that is more than one array's
        if copied is not None:
            return copied(self)
        aval = self.aval if self.aval.given_sharding is None else self.aval.update(sharding=None)
        out = backends.get().put(np.array(self._value), aval, None)
        return out.placed(self._sharding) if hasattr(self, "_sharding") else out

    # -- Python scalars ----------------------------------------------------------------------------
    def _scalar(self) -> Any:
        if self.aval.shape:
            raise TypeError(f"Only scalar arrays can be converted to Python scalars; got arr.ndim={self.ndim}")
        return self._value.item()

    def __bool__(self) -> bool:
        size = self.aval.size
        if size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
                if size else "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that "
                "an array is not empty.")
        return bool(self._value.reshape(())[()])

    def __int__(self) -> int:
        try:
            return int(self._scalar())
        except Exception as error:
            hide_frames(error)
            raise

    def __float__(self) -> float:
        try:
            return float(self._scalar())
        except Exception as error:
            hide_frames(error)
            raise

    def __complex__(self) -> complex:
        try:
            return complex(self._scalar())
        except Exception as error:
            hide_frames(error)
            raise

    def __index__(self) -> int:
        if self.aval.shape or not dtypes.issubdtype(self.aval.dtype, np.integer):
            raise TypeError("Only integer scalar arrays can be converted to a scalar index.")
        return int(self._value[()])

    def __format__(self, spec: str) -> str:
        if spec == "" and (self.aval.shape or by_device.running.made):
            return str(self)
        return format(self._value if self.aval.shape else self._value[()], spec)

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object")
        return self.aval.shape[0]

    def item(self, *args: Any) -> Any:
        return self._value.item(*args)

    def tolist(self) -> Any:
        return self._value.tolist()

    def tobytes(self, order: str = "C") -> bytes:
        return self._value.tobytes(order)  # type: ignore[arg-type]

    # -- text ------------------------------------------------------------------------------------
    def __repr__(self) -> str:
        if by_device.running.made and by_device.is_made(self):
            return by_device.text(lambda _: self)
        prefix = "Array("
        dtype = self.aval.dtype
        name = dtype.name + (", weak_type=True" if self.aval.weak_type else "")
        if is_unsummed(self.aval.given_sharding):
            return f"{prefix}shape={self.aval.shape}, dtype={name}, sharding={self.sharding})"
        if not self._is_at_hand():
            return f"{prefix}shape={self.aval.shape}, dtype={name})"
        if 0 in self.aval.shape:
            return f"{prefix}[], shape={self.aval.shape}, dtype={name})"
        text = np.array2string(self._value, prefix=prefix, suffix=",", separator=", ",
                               threshold=np.get_printoptions()["threshold"])
        # What follows a line that is too long is set off, not wrapped.
        last = len(text) - text.rfind("\n") + 1
        suffix = f"dtype={name})"
        space = " " * len(prefix) if last + len(suffix) + 1 > np.get_printoptions()["linewidth"] else " "
        return f"{prefix}{text},{space}{suffix}"

    def __str__(self) -> str:
        if by_device.running.made and by_device.is_made(self):
            return repr(self)
        return str(self._value) if self._is_at_hand() else repr(self)

    def _is_at_hand(self) -> bool:
        """Whether this process has all of it."""
        return not is_unsummed(self.aval.given_sharding) and (self.is_fully_addressable or self.is_fully_replicated)

    def __iter__(self) -> Iterator[Any]:
        if not self.aval.shape:
            raise TypeError("iteration over a 0-d array")
        array: Any = self._gathered()
        # The host reads elements where they are: that takes no program for each.
        if (type(self) is Array and not hasattr(array, "_sharding") and isinstance(self.aval.dtype, np.dtype)
                and self.aval.given_sharding is None and not by_device.running.made and not transfers.used
                and array._live().device.client.dlpack_type == 1):
            return array._rows()
        return (array[i] for i in range(self.aval.shape[0]))

    def _rows(self) -> Iterator[Array]:
        device, values = self._live().device, self._value
        aval = self.aval.update(shape=self.aval.shape[1:])
        for i in range(self.aval.shape[0]):
            row = device.client.put(values[i, ...], aval, device)
            row.committed = self.committed
            yield row


def _rebuild(value: np.ndarray, weak_type: bool) -> Array:
    from . import backends

    # As any array from outside: 64 bits are read as 32 where x64 is off.
    value = value.astype(dtypes.canonicalize_dtype(value.dtype), copy=False)
    return backends.get().put(value, shaped(value.shape, value.dtype, weak_type), None)


aval_rules[Array] = lambda x: x.aval

# classes of arrays whose dtype is extended: type of the dtype -> class
array_types: dict[type, type] = {}
kinds: set[type] = {Array}  # all classes of arrays


def register(dtype: type, kind: type) -> None:
    """Has arrays of dtypes of a class be of a class of their own."""
    array_types[dtype] = kind
    kinds.add(kind)


def float0_array(aval: ShapedArray, buffer: Any, committed: bool = False) -> np.ndarray:
    """An array of `float0`, which has no elements to keep anywhere: one of NumPy's."""
    return np.zeros(aval.shape, dtypes.float0)


def array_type(aval: ShapedArray) -> Callable[..., Any]:
    """What makes arrays of an abstract value, mostly their class."""
    if isinstance(aval, AbstractToken):
        return Token
    return float0_array if aval.dtype == dtypes.float0 else array_types.get(type(aval.dtype), Array)


class _OnDemand:
    """A method or property that `styrax.numpy` defines. It takes its place in the class when it is first used."""

    __slots__ = ("owner", "name", "home", "there", "is_property")

    def __init__(self, owner: type, name: str, home: str, there: str, is_property: bool) -> None:
        self.owner, self.name, self.home, self.there, self.is_property = owner, name, home, there, is_property

    def __get__(self, instance: Any, cls: type) -> Any:
        found: Any = getattr(importlib.import_module(f"styrax.{self.home}"), self.there)
        if self.owner is Tracer and self.name in ("__getitem__", "__setitem__", "at", "reshape", "transpose", "T"):
            found = _unless_reference(self.name, found)
        attribute = property(found) if self.is_property else _as_method(self.name, found)
        setattr(self.owner, self.name, attribute)
        try:
            return attribute.__get__(instance, cls)
        except Exception as error:
            hide_frames(error)
            raise


def _as_method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the library as a method: its first argument is the array."""
    if isinstance(function, FunctionType):
        return function

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    named(method, name, function.__doc__)
    method.__wrapped__ = function  # type: ignore[attr-defined]
    return method


def _unless_reference(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A method of arrays for tracers, some of which stand for references and have views of their own."""

    @functools.wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        aval = self.aval
        if type(aval) is AbstractRef:
            return aval.methods[name](self, *args, **kwargs)
        return function(self, *args, **kwargs)

    return method


def _add_methods(cls: type) -> None:
    """What `hooks` lists, except what the class defines itself because it needs the elements at once."""
    for table in (hooks.METHODS, hooks.PROPERTIES):
        for home, listed in table.items():
            for entry in listed.split():
                name, _, there = entry.partition(":")
                if name not in cls.__dict__:
                    setattr(cls, name, _OnDemand(cls, name, home, there or name, table is hooks.PROPERTIES))


_add_methods(Array)
_add_methods(Tracer)
