"""Arrays from Python and NumPy objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from styrax import lax
from styrax.core import hooks
from styrax.core.arrays import backends, mesh
from styrax.core.arrays.array import Array
from styrax.core.arrays.constants import constant
from styrax.core.arrays.devices import Device, Sharding, SingleDeviceSharding
from styrax.core.arrays.explicit import check_explicit
from styrax.core.arrays.out_shardings import result_sharding
from styrax.core.arrays.shardings import NamedSharding, PartitionSpec
from styrax.core.tracing.invalid_values import check_values
from styrax.core.tracing.source import api_boundary, hide_frames, warn
from styrax.core.tracing.trace import Tracer, get_aval, state
from styrax.core.types import avals, dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import (
    ArrayLike,
    DeviceLike,
    DTypeLike,
    File,
    NestedArrayLike,
    Object,
    ShardingLike,
    SupportsDLPack,
)
from styrax.lax.casting import warn_of_loss

from .promotion import (
    canonical,
    check_arraylike,
    check_int,
    convert,
    is_array,
    not_numeric,
    result_typed,
    typed,
    unwrap,
    user_dtype,
)

_SCALARS = (bool, int, float, complex)
_NUMPY = (np.ndarray, np.generic, *_SCALARS)


@api_boundary
def array(object: NestedArrayLike, dtype: DTypeLike | None = None, *args: Object, copy: bool = True,
          order: str | None = "K", ndmin: int = 0, device: DeviceLike | None = None,
          out_sharding: ShardingLike | None = None) -> Array:
    """An array with the elements of `object`: a number, nested sequences, a NumPy or another array.

    Args:
      object: what to convert.
      dtype: dtype of the result; by default that of the elements, where Python numbers give the
        default int, float or complex dtype (weakly typed when `object` itself is such a number).
      *args: `copy`, `order` and `ndmin` by position, which is deprecated.
      copy: whether an array is copied.
      order: "K", "C", "A" or None; memory is always laid out in rows.
      ndmin: leading dimensions of size 1 are added up to this rank.
      device, out_sharding: where the result lives: a device or a sharding, by default the default device.

    Returns:
      an array. 64-bit dtypes become those of 32 bits unless x64 is enabled; floats are cut towards zero into integers.

    Raises:
      TypeError: for what has no numbers in it.
      ValueError: for None, and for ragged sequences.
      OverflowError: for an int that its dtype does not hold.
      NotImplementedError: for other orders.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.array([[1, 2], [3, 4]], dtype="float32")
      Array([[1., 2.],
             [3., 4.]], dtype=float32)
    """
    if args:
        warn("Passing the copy, order, and ndmin arguments to jnp.array positionally is deprecated. Use "
                      "keyword arguments instead.", DeprecationWarning)
        given: list[Any] = [*args, *(copy, order, ndmin)[len(args):]]
        copy, order, ndmin = given
    found = None if dtype is None else user_dtype(dtype, "array")
    return _array(object, found, copy, order, ndmin, device, out_sharding)


def _array(object: NestedArrayLike, found: Any, copy: bool, order: str | None, ndmin: int, device: DeviceLike | None,
           out_sharding: ShardingLike | None) -> Array:
    if order not in (None, "K", "C", "A"):
        raise NotImplementedError("Only implemented for order='K'")
    where = device or (None if out_sharding is None else result_sharding(out_sharding, "jnp.array"))
    out = _from_object(object, found, bool(copy), where)
    if ndmin > out.ndim:
        return place(lax.expand_dims(out, tuple(range(ndmin - out.ndim))), where)
    return out


def asarray(a: NestedArrayLike, dtype: DTypeLike | None = None, order: str | None = None, *, copy: bool | None = None,
            device: DeviceLike | None = None, out_sharding: ShardingLike | None = None) -> Array:
    """As `array`, copying only what has to be copied.

    Args:
      a: what to convert.
      dtype: dtype of the result, as for `array`.
      order: as for `array`.
      copy: True always copies, None where that is needed; False raises on devices other than CPUs for what is no array
        of ours.
      device, out_sharding: where the result lives: a device or a sharding.

    Returns:
      an array: `a` itself where it is one and nothing has to change.

    Raises:
      ValueError: for `copy=False`, as said, and as `array`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.asarray([True, False])
      Array([ True, False], dtype=bool)
    """
    try:
        if dtype is None and device is out_sharding is None and not copy and is_array(a) and order is None:
            # (a number may be differentiated as it is, the result is an array)
            return array(a) if isinstance(a, Tracer) and isinstance(a.to_concrete_value(), _NUMPY) else a
        if copy is False and not is_array(a) and backends.get().dlpack_type != 1:
            raise ValueError(f"jnp.asarray: cannot convert object of type {type(a)} to JAX Array on backend="
                             f"'{backends.get().platform}' with copy=False. Consider using copy=None or copy=True "
                             "instead.")
        found = None if dtype is None else user_dtype(dtype, "asarray")
        return _array(a, found, bool(copy), order, 0, device, out_sharding)
    except Exception as error:
        hide_frames(error)
        raise


def place(x: Any, device: Any) -> Array:
    """`x` on a device (or under a sharding); `x` itself for None, and for a sharding over no mesh, as that of the type
    of an array that is not spread over one.

    Raises ValueError for a partition over axes of the mesh in force that are not explicit, and for an array that is
    committed to other devices.
    """
    if device is None or isinstance(device, NamedSharding) and device.mesh.empty:
        return x
    from styrax.lax.collectives.placing import constrain, device_put, over_mesh, refuse_other_devices, reshard

    if isinstance(device, PartitionSpec) and not mesh.in_force().empty:
        check_explicit(over_mesh(device))
    if avals.explicit and (isinstance(device, PartitionSpec)
                           or isinstance(device, NamedSharding) and device.mesh.explicit_axes
                           and not state.trace.is_eval):
        return reshard(x, device)
    if isinstance(device, NamedSharding) and device.mesh.explicit_axes:  # as types tell it, for all dimensions
        missing = get_aval(x).ndim - len(device.spec)
        device = device.update(spec=device.spec.update(partitions=(*device.spec, *(None,) * missing)))
    wanted = SingleDeviceSharding(device) if isinstance(device, Device) else device
    if state.trace.is_eval and isinstance(x, Array) and x.committed and isinstance(wanted, Sharding):
        refuse_other_devices(x, wanted)
    if state.trace.is_eval or not isinstance(wanted, Sharding) or isinstance(get_aval(x).dtype, dtypes.ExtendedDType):
        return device_put(x, device)
    return constrain(x, wanted)


def with_result(f: Callable[..., Array], out_sharding: Any, name: str = "") -> Callable[..., Array]:
    """A function of arrays, that is a part of the function `name`, with its result spread as is asked for, if it is."""
    if out_sharding is None:
        return f
    told = result_sharding(out_sharding, name)
    return hooks.auto_axes(f, out_sharding=told) if avals.explicit else f


def told_by(device: Any) -> NamedSharding | None:
    """The sharding that an operation gives its result, of a partition over explicit axes of the mesh in force; None
    where the result is placed afterwards. ValueError for a partition over other axes."""
    if not avals.explicit or not isinstance(device, PartitionSpec) or not mesh.in_force().explicit_axes:
        return None
    from styrax.lax.collectives.placing import over_mesh

    sharding = over_mesh(device)
    check_explicit(sharding)
    return sharding


def put(value: np.ndarray, weak: bool = False, device: Any = None) -> Array:
    """A NumPy array of a canonical dtype as an array of ours, or a scalar as a literal of the program being written."""
    if state.trace.is_eval:
        check_values((value,), "convert_element_type")
    out = constant(value, ShapedArray(value.shape, value.dtype, weak))
    if device is None and mesh.get_mesh() is not mesh.empty_mesh and state.trace.is_eval:
        out = out.placed(NamedSharding(mesh.get_mesh(), PartitionSpec()))
        if out.aval.given_sharding is not None and not mesh.state.abstract.explicit_axes:  # as seen from here
            out.aval = out.aval.update(sharding=None)
    return place(out, device)


def _from_object(x: Any, dtype: Any, copy: bool, device: Any) -> Array:
    if is_array(x):
        out = x if dtype is None else convert(x, dtype)
        if device is not None:
            return place(out, device)
        return lax.copy_p.bind(x) if copy and out is x else out
    if hasattr(x, "__jax_array__"):
        return _from_object(x.__jax_array__(), dtype, copy, device)
    if isinstance(x, _SCALARS) and not isinstance(x, np.generic):
        if dtype is not None:
            with np.errstate(all="ignore"):
                return put(np.array(x, dtype), False, device)
        if isinstance(x, int):
            check_int(x)
        kind, weak = typed(x)
        return put(np.array(x, kind), weak, device)
    if isinstance(x, (np.ndarray, np.generic)):
        return _from_numpy(x, dtype, device)
    if isinstance(x, (list, tuple)):
        return _from_sequence(x, dtype, device)
    if x is None:
        raise ValueError("None is not a valid value for jnp.array")
    if isinstance(x, (str, bytes, dict, set)):
        raise not_numeric(x, np.asarray(x).dtype)
    if hasattr(x, "__array__") or hasattr(x, "__array_interface__"):
        return _from_numpy(np.asarray(x), dtype, device)
    if hasattr(x, "__dlpack__"):
        return _from_numpy(np.from_dlpack(x), dtype, device)
    try:
        view = memoryview(x)  # bytearrays, arrays of the standard library, …: their elements have dtypes
    except TypeError:
        if hasattr(x, "__len__") and hasattr(x, "__getitem__"):
            return _from_sequence(list(x), dtype, device)
        raise not_numeric(x, np.asarray(x).dtype) from None
    return _from_numpy(np.asarray(view), dtype, device)


def _from_numpy(x: Any, dtype: Any, device: Any) -> Array:
    value = np.asarray(x)
    if not (value.dtype.kind in "biufc" or dtypes.issubdtype(value.dtype, np.number) or value.dtype == dtypes.float0):
        raise not_numeric(x, value.dtype)
    if dtype is None:
        dtypes.check_byte_order(value.dtype)
    target = canonical(value.dtype) if dtype is None else dtype
    if value.dtype != target:
        with np.errstate(all="ignore"):
            if value.dtype.kind == "c" and target.kind not in "cb":
                warn_of_loss(target)
                value = value.real
            value = value.astype(target)
    # The caller may write into his array afterwards, so its memory is never shared.
    return put(np.array(value, order="C", copy=True), False, device)


def _leaves(x: Any) -> Iterator[Any]:
    for item in x:
        if isinstance(item, (list, tuple)):
            yield from _leaves(item)
        else:
            yield item


def _from_sequence(x: Any, dtype: Any, device: Any) -> Array:
    leaves = [leaf.__jax_array__() if _is_wrapper(leaf) else leaf for leaf in _leaves(x)]
    kinds = set(map(type, leaves))
    if type(None) in kinds:
        raise ValueError("None is not a valid value for jnp.array")
    if any(issubclass(kind, (Array, Tracer)) for kind in kinds) or any(map(_is_wrapper, _leaves(x))):
        if dtype is None:
            dtype, _ = result_typed(*(leaf if _is_number(leaf) else np.asarray(leaf) for leaf in leaves))
        return place(_stacked(x, dtype), device)
    if dtype is None:
        if not kinds:
            dtype = canonical(np.dtype(np.float64))
        elif kinds <= {bool, int, float, complex}:
            dtype = canonical(np.result_type(*({bool: np.bool_, int: np.int64, float: np.float64,
                                                complex: np.complex128}[k] for k in kinds)))
        elif all(issubclass(k, (np.ndarray, np.generic, *_SCALARS)) for k in kinds):
            samples = {(k, getattr(leaf, "dtype", None)): leaf for k, leaf in zip(map(type, leaves), leaves)}
            for leaf in samples.values():
                if isinstance(leaf, np.generic) and leaf.dtype.kind in "SUOMm":
                    raise not_numeric(leaf, leaf.dtype)
            dtype, _ = result_typed(*(0.0 if isinstance(s, np.ndarray) and s.dtype.kind in "OSU" else s
                                      for s in samples.values()))
    with np.errstate(all="ignore"):
        value = np.array(x, dtype=dtype) if _all_numbers(kinds) else np.array(x)
    if value.dtype.kind in "OSUV" and not dtypes.issubdtype(value.dtype, np.number):
        bad = next((leaf for leaf in leaves if np.asarray(leaf).dtype.kind in "OSU"), x)
        raise not_numeric(bad, np.asarray(bad).dtype)
    return _from_numpy(value, dtype, device)


def _all_numbers(kinds: set[type]) -> bool:
    return all(issubclass(k, (np.number, np.bool_, np.ndarray, *_SCALARS)) for k in kinds)


def _is_number(x: Any) -> bool:
    return is_array(x) or isinstance(x, (np.ndarray, np.generic, *_SCALARS))


def _is_wrapper(x: Any) -> bool:
    return hasattr(x, "__jax_array__") and not is_array(x)


def _stacked(x: Any, dtype: Any) -> Array:
    """Nested sequences with arrays in them, concatenated level by level."""
    if isinstance(x, (list, tuple)):
        if not any(is_array(leaf) or _is_wrapper(leaf) for leaf in _leaves(x)):
            return _from_sequence(x, dtype, None)
        if not x:
            return _from_numpy(np.zeros(0), dtype, None)
        parts = [lax.expand_dims(_stacked(item, dtype), (0,)) for item in x]
        shapes = {p.shape for p in parts}
        if len(shapes) > 1:
            raise TypeError("Cannot concatenate arrays with shapes that differ in dimensions other than the one being "
                            "concatenated: concatenating along dimension 0 for shapes "
                            f"{', '.join(str(p.shape) for p in parts)}.")
        return lax.concatenate(parts, 0) if len(parts) > 1 else parts[0]
    return convert(unwrap(x), dtype) if _is_number(x) or _is_wrapper(x) else _from_object(x, dtype, False, None)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of `a`.

    Args:
      a: an array or number.
      order: "C", "A", "K" or None; memory is always laid out in rows.

    Returns:
      an array of the shape and dtype of `a`.

    Raises:
      TypeError: for what is no array or number.
    """
    check_arraylike("copy", a)
    return array(a, copy=True, order=order or "K")


def frombuffer(buffer: bytes | bytearray | memoryview | np.ndarray, dtype: DTypeLike = float, count: int = -1,
               offset: int = 0) -> Array:
    """A vector of the bytes of `buffer` taken as elements of `dtype`.

    Args:
      buffer: bytes, or an object with such a memory.
      dtype: how the bytes are read; elements of 64 bits become those of 32 unless x64 is enabled.
      count: how many elements; -1 for all.
      offset: how many bytes are left out in front.

    Returns:
      a vector, which does not share the memory.
    """
    return asarray(np.frombuffer(buffer, dtype=dtype, count=count, offset=offset))


def fromfile(*args: Object, **kwargs: Object) -> Array:
    """Not available: reading files is no array operation. `jnp.asarray(np.fromfile(...))` does it.

    Args:
      *args, **kwargs: what `np.fromfile` takes.

    Returns:
      nothing: it always raises.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError("jnp.fromfile() is not implemented because it may be non-pure and thus unsafe for use "
                              "with JIT and other JAX transformations. Consider using jnp.asarray(np.fromfile(...)) "
                              "instead, although care should be taken if np.fromfile is used within jax "
                              "transformations because of its potential side-effect of consuming the file object.")


def fromiter(*args: Object, **kwargs: Object) -> Array:
    """Not available: consuming an iterator is no array operation. `jnp.asarray(np.fromiter(...))` does it.

    Args:
      *args, **kwargs: what `np.fromiter` takes.

    Returns:
      nothing: it always raises.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError("jnp.fromiter() is not implemented because it may be non-pure and thus unsafe for use "
                              "with JIT and other JAX transformations. Consider using jnp.asarray(np.fromiter(...)) "
                              "instead, although care should be taken if np.fromiter is used within jax "
                              "transformations because of its potential side-effect of consuming the iterable object.")


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """A vector of the numbers that are written in a string.

    Args:
      string: the text.
      dtype: how the numbers are read; those of 64 bits become such of 32 unless x64 is enabled.
      count: how many; -1 for all.
      sep: what stands between them; spaces around it are left out.

    Returns:
      a vector.
    """
    return asarray(np.fromstring(string, dtype=dtype, count=count, sep=sep))


def from_dlpack(x: SupportsDLPack, /, *, device: DeviceLike | None = None, copy: bool | None = None) -> Array:
    """An array from an object that speaks the DLPack protocol, such as another library's.

    Args:
      x: an object with `__dlpack__` and `__dlpack_device__`.
      device: where the result lives.
      copy: True copies, False fails where sharing the memory is not possible, None copies only then.

    Returns:
      an array of the shape and dtype of `x`. Where memory is shared, changes of it show.

    Raises:
      TypeError: for an object without the protocol.
      ValueError: for `copy=False` where a copy is needed.
    """
    from styrax.core.arrays import dlpack

    return dlpack.from_dlpack(x, device=device, copy=copy)


def load(file: File, *args: Object, **kwargs: Object) -> Array:
    """An array, or an archive of arrays, read from a file that `save` or NumPy wrote.

    Args:
      file: a path or an open file.
      *args, **kwargs: what `np.load` takes besides.

    Returns:
      an array (raw elements of two bytes are taken as bfloat16), or NumPy's mapping from names for an archive.
    """
    out = np.load(file, *args, **kwargs)
    if isinstance(out, np.ndarray):
        # bfloat16 and its kin are written as raw bytes.
        out = out.view(dtypes.bfloat16) if out.dtype.kind == "V" and out.dtype.itemsize == 2 else out
        return asarray(out)
    return out


def astype(x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False, device: DeviceLike | None = None) -> Array:
    """`x` with its elements converted to `dtype`.

    Floats are cut towards zero into integers: NaN gives 0, and what is out of range the nearest bound. Complex numbers
    lose their imaginary part (with a warning), integers the bits that do not fit. Anything but 0 is True.

    Args:
      x: an array or number.
      dtype: the new dtype; None for the default float.
      copy: whether the result is a copy where the dtype is the same.
      device: where the result lives: a device or a sharding.

    Returns:
      an array of the shape of `x`.

    Raises:
      TypeError: for what is no array or number.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.astype(jnp.array([1.7, -1.7]), jnp.int32)
      Array([ 1, -1], dtype=int32)
    """
    try:
        if not _is_number(x) and not hasattr(x, "__jax_array__"):
            raise TypeError(f"astype requires ndarray or scalar arguments, got {type(x)} at position 0.")
        x = x if is_array(x) else asarray(x)
        if dtype is None:
            dtype = float
        target = user_dtype(dtype, "astype")
        have = x.dtype
        if dtypes.issubdtype(have, dtypes.extended) or dtypes.issubdtype(target, dtypes.extended):
            return place(x if have == target else lax.convert_element_type(x, target), device)
        if dtypes.issubdtype(have, np.complexfloating) and not dtypes.issubdtype(target, np.complexfloating):
            if target == np.bool_:
                return place(lax.ne(x, np.zeros((), have)), device)
            warn("Casting from complex to real dtypes will soon raise a ValueError. Please first use jnp.real or "
                 "jnp.imag to take the real/imaginary component of your input.", DeprecationWarning)
            return place(lax.convert_element_type_p.bind(x, new_dtype=target, weak_type=False, sharding=None), device)
        out = convert(x, target)
        if copy and out is x:
            out = lax.copy_p.bind(x)
        return place(out, device)
    except Exception as error:
        hide_frames(error)
        raise


