"""Places in the user's program: capture, text, warnings and tracebacks."""

import functools
import traceback
import warnings

import pytest

from styrax.core.settings import config
from styrax.core.tracing import errors, source
from styrax.core.types.avals import ShapedArray

HERE = __file__


def place():
    return source.current()


def test_current_is_the_callers_place():
    info = place()
    assert info.file_name == HERE
    assert info.function_name == "place"
    assert info.source_line() == "return source.current()"
    line, column = info.position
    assert info.summary() == f"{HERE}:{line}:{column} (place)"
    assert source.summarize(info) == info.summary()
    assert column == 11


def test_our_own_frames_are_hidden():
    # Called through a function of the package, the place is still in this file.
    wrapped = source.api_boundary(place)
    assert wrapped().file_name == HERE


def test_same_place_is_equal():
    first, second = (place() for _ in range(2))
    assert first == second and hash(first) == hash(second)
    assert first != source.current()
    assert first.replace("scope").name_stack == "scope"
    assert first != first.replace("scope")


def test_unknown():
    assert source.summarize(None) == source.summarize(source.unknown) == ""
    assert source.unknown.summary() == "<unknown>"
    assert source.unknown.position == (0, 0)


def test_exclusions(tmp_path):
    path = tmp_path / "library.py"
    path.write_text("def call(f):\n    return f()\n")
    space = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    call = space["call"]
    before = len(source._excluded)
    assert call(source.current).file_name == str(path)
    source.register_exclusion(str(tmp_path))
    try:
        assert call(source.current).file_name == HERE
    finally:
        del source._excluded[before:]
        source._ours.clear()


def test_warning_points_at_the_user():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        source.warn("careful", RuntimeWarning)
    assert caught[0].filename == HERE
    assert caught[0].category is RuntimeWarning


def test_describe_function():
    def f(x):
        return x

    line = f.__code__.co_firstlineno
    assert source.describe_function(f) == f"f at {HERE}:{line}"
    assert source.describe_function(functools.partial(f, 1)) == f"f at {HERE}:{line}"
    assert source.describe_function(functools.wraps(f)(lambda x: x)) == f"f at {HERE}:{line}"
    assert source.describe_function(len) == "len at <unknown>"


def fail():
    raise ValueError("no")


def frames(call):
    with pytest.raises(ValueError) as error:
        call()
    return [frame.filename for frame in traceback.extract_tb(error.value.__traceback__)]


def test_tracebacks_hide_our_frames():
    call = source.api_boundary(fail)
    assert set(frames(call)) == {HERE}
    with config.traceback_filtering("off"):
        assert source.__file__ in frames(call)


class Tracer:
    aval = ShapedArray((2, 3), "float32")

    def origin(self):
        return "\nfrom the argument x"


@pytest.mark.parametrize(
    "cls, text",
    [
        (
            errors.ConcretizationTypeError,
            "where concrete value is expected: traced array with shape float32[2,3]",
        ),
        (
            errors.TracerBoolConversionError,
            "Attempted boolean conversion of traced array with shape float32[2,3].",
        ),
        (errors.TracerArrayConversionError, "__array__() was called on traced array with shape float32[2,3]"),
        (errors.TracerIntegerConversionError, "__index__() method was called on traced array"),
        (errors.NonConcreteBooleanIndexError, "Array boolean indices must be concrete; got float32[2,3]"),
    ],
)
def test_errors_name_the_value_and_the_line(cls, text):
    error = cls(Tracer())
    assert text in str(error)
    assert "from the argument x" in str(error)
    assert HERE in str(error)
    assert "error = cls(Tracer())" in str(error)


def test_classes_as_jax():
    import jax
    for name in [n for n in dir(jax.errors) if n[0].isupper()]:
        ours, theirs = getattr(errors, name), getattr(jax.errors, name)
        public = [c.__name__ for c in theirs.__mro__ if not c.__name__.startswith("_")]
        assert [c.__name__ for c in ours.__mro__] == public, name
