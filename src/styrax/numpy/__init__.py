"""NumPy's functions on arrays that are traced, differentiated, batched and compiled.

Names are found where they are defined when they are first used: a program loads what it calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..lazy import names as _names

# module of this package -> the names that it defines
_HOMES = {
    "accumulations": (
        "cumprod cumsum cumulative_prod cumulative_sum nanargmax nanargmin nancumprod nancumsum nanmax "
        "nanmean nanmin nanprod nanstd nansum nanvar"),
    "arrangements": "flip fliplr flipud repeat resize roll rot90 tile",
    "array_api": "__array_api_version__ __array_namespace_info__",
    "binary": (
        "arctan2 atan2 bitwise_left_shift bitwise_right_shift copysign divide equal float_power fmax fmin "
        "greater greater_equal heaviside hypot ldexp left_shift less less_equal nextafter not_equal pow power "
        "right_shift spacing true_divide"),
    "broadcasting": "broadcast_arrays broadcast_shapes broadcast_to",
    "calculus": "allclose array_equal array_equiv diff ediff1d gradient interp isclose trapezoid unwrap",
    "clipping": "clip",
    "complex_parts": "angle conj conjugate imag iscomplex iscomplexobj isreal isrealobj real",
    "concatenation": (
        "append array_split block column_stack concat concatenate dsplit dstack hsplit hstack split stack "
        "vsplit vstack"),
    "conversion": "array asarray astype copy from_dlpack frombuffer fromfile fromiter fromstring load",
    "convolutions": "convolve correlate",
    "creation": "empty empty_like fromfunction full full_like indices ones ones_like zeros zeros_like",
    "division": "divmod floor_divide fmod gcd lcm mod remainder",
    "dot_products": "cross dot inner kron matmul matvec outer tensordot vdot vecdot vecmat",
    "dtype_names": (
        "ComplexWarning array_repr array_str bfloat16 bool bool_ can_cast cdouble character complex128 "
        "complex64 complex_ complexfloating csingle double dtype e euler_gamma finfo flexible float16 float32 "
        "float4_e2m1fn float64 float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz "
        "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float_ floating generic "
        "get_printoptions iinfo index_exp inexact inf int1 int16 int2 int32 int4 int64 int8 int_ integer "
        "isdtype isscalar issubdtype iterable nan ndarray newaxis number object_ pi printoptions "
        "promote_types result_type s_ save savez set_printoptions signedinteger single uint uint1 uint16 "
        "uint2 uint32 uint4 uint64 uint8 unsignedinteger"),
    "editing": "delete insert packbits pad trim_zeros unpackbits",
    "einsums": "einsum einsum_path",
    "float_tests": "isfinite isinf isnan isneginf isposinf signbit",
    "grids": (
        "c_ diag_indices diag_indices_from ix_ mask_indices meshgrid mgrid ogrid r_ tril_indices "
        "tril_indices_from triu_indices triu_indices_from"),
    "histograms": "bincount histogram histogram2d histogram_bin_edges histogramdd",
    "moments": "average mean std var",
    "patterns": "diag diagflat eye identity tri tril triu vander",
    "polynomials": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots",
    "positions": "argwhere compress extract flatnonzero nonzero ravel_multi_index unravel_index",
    "ranges": "arange geomspace linspace logspace",
    "reductions": "all amax amin any argmax argmin count_nonzero max min minmax prod ptp sum",
    "rounding": "around ceil floor frexp modf rint round trunc",
    "selection": "choose fill_diagonal piecewise place put put_along_axis select take take_along_axis where",
    "sets": "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values",
    "shaping": (
        "atleast_1d atleast_2d atleast_3d diagonal expand_dims matrix_transpose moveaxis permute_dims ravel "
        "reshape rollaxis squeeze swapaxes trace transpose unstack"),
    "sorting": "argpartition argsort digitize lexsort partition searchsorted sort sort_complex top_k",
    "statistics": "corrcoef cov median nanmedian nanpercentile nanquantile percentile quantile",
    "tapers": "bartlett blackman hamming hanning kaiser",
    "ufunc_objects": (
        "add bitwise_and bitwise_or bitwise_xor frompyfunc logaddexp logaddexp2 logical_and logical_or "
        "logical_xor maximum minimum multiply negative subtract ufunc"),
    "ufuncs": (
        "abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh "
        "bitwise_count bitwise_invert bitwise_not cbrt cos cosh deg2rad degrees exp exp2 expm1 fabs i0 invert "
        "log log10 log1p log2 logical_not nan_to_num ndim positive rad2deg radians reciprocal shape sign sin "
        "sinc sinh size sqrt square tan tanh"),
    "vectorization": "apply_along_axis apply_over_axes vectorize",
}
_SUBMODULES = ("fft", "linalg")

if _TYPE_CHECKING:  # the same names for type checkers and editors
    from . import fft, linalg
    from .accumulations import (
        cumprod,
        cumsum,
        cumulative_prod,
        cumulative_sum,
        nanargmax,
        nanargmin,
        nancumprod,
        nancumsum,
        nanmax,
        nanmean,
        nanmin,
        nanprod,
        nanstd,
        nansum,
        nanvar,
    )
    from .arrangements import flip, fliplr, flipud, repeat, resize, roll, rot90, tile
    from .array_api import __array_api_version__, __array_namespace_info__
    from .binary import (
        arctan2,
        atan2,
        bitwise_left_shift,
        bitwise_right_shift,
        copysign,
        divide,
        equal,
        float_power,
        fmax,
        fmin,
        greater,
        greater_equal,
        heaviside,
        hypot,
        ldexp,
        left_shift,
        less,
        less_equal,
        nextafter,
        not_equal,
        pow,
        power,
        right_shift,
        spacing,
        true_divide,
    )
    from .broadcasting import broadcast_arrays, broadcast_shapes, broadcast_to
    from .calculus import (
        allclose,
        array_equal,
        array_equiv,
        diff,
        ediff1d,
        gradient,
        interp,
        isclose,
        trapezoid,
        unwrap,
    )
    from .clipping import clip
    from .complex_parts import angle, conj, conjugate, imag, iscomplex, iscomplexobj, isreal, isrealobj, real
    from .concatenation import (
        append,
        array_split,
        block,
        column_stack,
        concat,
        concatenate,
        dsplit,
        dstack,
        hsplit,
        hstack,
        split,
        stack,
        vsplit,
        vstack,
    )
    from .conversion import (
        array,
        asarray,
        astype,
        copy,
        from_dlpack,
        frombuffer,
        fromfile,
        fromiter,
        fromstring,
        load,
    )
    from .convolutions import convolve, correlate
    from .creation import empty, empty_like, fromfunction, full, full_like, indices, ones, ones_like, zeros, zeros_like
    from .division import divmod, floor_divide, fmod, gcd, lcm, mod, remainder
    from .dot_products import cross, dot, inner, kron, matmul, matvec, outer, tensordot, vdot, vecdot, vecmat
    from .dtype_names import (
        ComplexWarning,
        array_repr,
        array_str,
        bfloat16,
        bool,
        bool_,
        can_cast,
        cdouble,
        character,
        complex64,
        complex128,
        complex_,
        complexfloating,
        csingle,
        double,
        dtype,
        e,
        euler_gamma,
        finfo,
        flexible,
        float4_e2m1fn,
        float6_e2m3fn,
        float6_e3m2fn,
        float8_e3m4,
        float8_e4m3,
        float8_e4m3b11fnuz,
        float8_e4m3fn,
        float8_e4m3fnuz,
        float8_e5m2,
        float8_e5m2fnuz,
        float8_e8m0fnu,
        float16,
        float32,
        float64,
        float_,
        floating,
        generic,
        get_printoptions,
        iinfo,
        index_exp,
        inexact,
        inf,
        int1,
        int2,
        int4,
        int8,
        int16,
        int32,
        int64,
        int_,
        integer,
        isdtype,
        isscalar,
        issubdtype,
        iterable,
        nan,
        ndarray,
        newaxis,
        number,
        object_,
        pi,
        printoptions,
        promote_types,
        result_type,
        s_,
        save,
        savez,
        set_printoptions,
        signedinteger,
        single,
        uint,
        uint1,
        uint2,
        uint4,
        uint8,
        uint16,
        uint32,
        uint64,
        unsignedinteger,
    )
    from .editing import delete, insert, packbits, pad, trim_zeros, unpackbits
    from .einsums import einsum, einsum_path
    from .float_tests import isfinite, isinf, isnan, isneginf, isposinf, signbit
    from .grids import (
        c_,
        diag_indices,
        diag_indices_from,
        ix_,
        mask_indices,
        meshgrid,
        mgrid,
        ogrid,
        r_,
        tril_indices,
        tril_indices_from,
        triu_indices,
        triu_indices_from,
    )
    from .histograms import bincount, histogram, histogram2d, histogram_bin_edges, histogramdd
    from .moments import average, mean, std, var
    from .patterns import diag, diagflat, eye, identity, tri, tril, triu, vander
    from .polynomials import poly, polyadd, polyder, polydiv, polyfit, polyint, polymul, polysub, polyval, roots
    from .positions import argwhere, compress, extract, flatnonzero, nonzero, ravel_multi_index, unravel_index
    from .ranges import arange, geomspace, linspace, logspace
    from .reductions import (
        all,
        amax,
        amin,
        any,
        argmax,
        argmin,
        count_nonzero,
        max,
        min,
        minmax,
        prod,
        ptp,
        sum,
    )
    from .rounding import around, ceil, floor, frexp, modf, rint, round, trunc
    from .selection import (
        choose,
        fill_diagonal,
        piecewise,
        place,
        put,
        put_along_axis,
        select,
        take,
        take_along_axis,
        where,
    )
    from .sets import (
        intersect1d,
        isin,
        setdiff1d,
        setxor1d,
        union1d,
        unique,
        unique_all,
        unique_counts,
        unique_inverse,
        unique_values,
    )
    from .shaping import (
        atleast_1d,
        atleast_2d,
        atleast_3d,
        diagonal,
        expand_dims,
        matrix_transpose,
        moveaxis,
        permute_dims,
        ravel,
        reshape,
        rollaxis,
        squeeze,
        swapaxes,
        trace,
        transpose,
        unstack,
    )
    from .sorting import (
        argpartition,
        argsort,
        digitize,
        lexsort,
        partition,
        searchsorted,
        sort,
        sort_complex,
        top_k,
    )
    from .statistics import corrcoef, cov, median, nanmedian, nanpercentile, nanquantile, percentile, quantile
    from .tapers import bartlett, blackman, hamming, hanning, kaiser
    from .ufunc_objects import (
        add,
        bitwise_and,
        bitwise_or,
        bitwise_xor,
        frompyfunc,
        logaddexp,
        logaddexp2,
        logical_and,
        logical_or,
        logical_xor,
        maximum,
        minimum,
        multiply,
        negative,
        subtract,
        ufunc,
    )
    from .ufuncs import (
        abs,
        absolute,
        acos,
        acosh,
        arccos,
        arccosh,
        arcsin,
        arcsinh,
        arctan,
        arctanh,
        asin,
        asinh,
        atan,
        atanh,
        bitwise_count,
        bitwise_invert,
        bitwise_not,
        cbrt,
        cos,
        cosh,
        deg2rad,
        degrees,
        exp,
        exp2,
        expm1,
        fabs,
        i0,
        invert,
        log,
        log1p,
        log2,
        log10,
        logical_not,
        nan_to_num,
        ndim,
        positive,
        rad2deg,
        radians,
        reciprocal,
        shape,
        sign,
        sin,
        sinc,
        sinh,
        size,
        sqrt,
        square,
        tan,
        tanh,
    )
    from .vectorization import apply_along_axis, apply_over_axes, vectorize

    __all__ = [
        "ComplexWarning", "abs", "absolute", "acos", "acosh", "add", "all", "allclose", "amax", "amin", "angle",
        "any", "append", "apply_along_axis", "apply_over_axes", "arange", "arccos", "arccosh", "arcsin", "arcsinh",
        "arctan", "arctan2", "arctanh", "argmax", "argmin", "argpartition", "argsort", "argwhere", "around", "array",
        "array_equal", "array_equiv", "array_repr", "array_split", "array_str", "asarray", "asin", "asinh", "astype",
        "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "average", "bartlett", "bfloat16",
        "bincount", "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not",
        "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman", "block", "bool", "bool_", "broadcast_arrays",
        "broadcast_shapes", "broadcast_to", "c_", "can_cast", "cbrt", "cdouble", "ceil", "character", "choose",
        "clip", "column_stack", "complex128", "complex64", "complex_", "complexfloating", "compress", "concat",
        "concatenate", "conj", "conjugate", "convolve", "copy", "copysign", "corrcoef", "correlate", "cos", "cosh",
        "count_nonzero", "cov", "cross", "csingle", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum",
        "deg2rad", "degrees", "delete", "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "diff",
        "digitize", "divide", "divmod", "dot", "double", "dsplit", "dstack", "dtype", "e", "ediff1d", "einsum",
        "einsum_path", "empty", "empty_like", "equal", "euler_gamma", "exp", "exp2", "expand_dims", "expm1",
        "extract", "eye", "fabs", "fft", "fill_diagonal", "finfo", "flatnonzero", "flexible", "flip", "fliplr",
        "flipud", "float16", "float32", "float4_e2m1fn", "float64", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4",
        "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
        "float8_e8m0fnu", "float_", "float_power", "floating", "floor", "floor_divide", "fmax", "fmin", "fmod",
        "frexp", "from_dlpack", "frombuffer", "fromfile", "fromfunction", "fromiter", "frompyfunc", "fromstring",
        "full", "full_like", "gcd", "generic", "geomspace", "get_printoptions", "gradient", "greater",
        "greater_equal", "hamming", "hanning", "heaviside", "histogram", "histogram2d", "histogram_bin_edges",
        "histogramdd", "hsplit", "hstack", "hypot", "i0", "identity", "iinfo", "imag", "index_exp", "indices",
        "inexact", "inf", "inner", "insert", "int1", "int16", "int2", "int32", "int4", "int64", "int8", "int_",
        "integer", "interp", "intersect1d", "invert", "isclose", "iscomplex", "iscomplexobj", "isdtype", "isfinite",
        "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal", "isrealobj", "isscalar", "issubdtype", "iterable",
        "ix_", "kaiser", "kron", "lcm", "ldexp", "left_shift", "less", "less_equal", "lexsort", "linalg", "linspace",
        "load", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "logical_and", "logical_not",
        "logical_or", "logical_xor", "logspace", "mask_indices", "matmul", "matrix_transpose", "matvec", "max",
        "maximum", "mean", "median", "meshgrid", "mgrid", "min", "minimum", "minmax", "mod", "modf", "moveaxis",
        "multiply",
        "nan", "nan_to_num", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian",
        "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "ndarray", "ndim",
        "negative", "newaxis", "nextafter", "nonzero", "not_equal", "number", "object_", "ogrid", "ones", "ones_like",
        "outer", "packbits", "pad", "partition", "percentile", "permute_dims", "pi", "piecewise", "place", "poly",
        "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval", "positive", "pow",
        "power", "printoptions", "prod", "promote_types", "ptp", "put", "put_along_axis", "quantile", "r_", "rad2deg",
        "radians", "ravel", "ravel_multi_index", "real", "reciprocal", "remainder", "repeat", "reshape", "resize",
        "result_type", "right_shift", "rint", "roll", "rollaxis", "roots", "rot90", "round", "s_", "save", "savez",
        "searchsorted", "select", "set_printoptions", "setdiff1d", "setxor1d", "shape", "sign", "signbit",
        "signedinteger", "sin", "sinc", "single", "sinh", "size", "sort", "sort_complex", "spacing", "split", "sqrt",
        "square", "squeeze", "stack", "std", "subtract", "sum", "swapaxes", "take", "take_along_axis", "tan", "tanh",
        "tensordot", "tile", "top_k", "trace", "transpose", "trapezoid", "tri", "tril", "tril_indices",
        "tril_indices_from", "trim_zeros",
        "triu", "triu_indices", "triu_indices_from", "true_divide", "trunc", "ufunc", "uint", "uint1",
        "uint16", "uint2", "uint32", "uint4", "uint64", "uint8", "union1d", "unique", "unique_all", "unique_counts",
        "unique_inverse", "unique_values", "unpackbits", "unravel_index", "unsignedinteger", "unstack", "unwrap",
        "vander", "var", "vdot", "vecdot", "vecmat", "vectorize", "vsplit", "vstack", "where", "zeros", "zeros_like",
    ]
else:
    __getattr__, __dir__, __all__ = _names(
        __name__, {f"numpy.{home}": listed for home, listed in _HOMES.items()}, modules=_SUBMODULES)
