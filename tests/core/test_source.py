"""Places in the user's program: capture, text, warnings and tracebacks."""

import functools
import re
import traceback
import warnings

import jax
import pytest

import styrax
from styrax.core.settings import config
from styrax.core.tracing import errors, source
from styrax.core.types.avals import ShapedArray

HERE = __file__
PACKAGES = re.compile(r"[/\\](jax|styrax)[/\\]")


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
    assert call(source.current).file_name == str(path)
    source.register_exclusion(str(tmp_path))
    try:
        assert call(source.current).file_name == HERE
    finally:
        source._excluded.remove(str(tmp_path))
    assert call(source.current).file_name == str(path)


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


def told(package, raising):
    """What an exception that leaves nested entry points says of itself, for each handler it may be raised in."""
    inner = package.jit(raising)
    outer = package.jit(lambda x: package.vmap(inner)(x))
    found = []
    for handled in (None, ZeroDivisionError()):
        with pytest.raises(ValueError) as info:
            try:
                if handled is not None:
                    raise handled
                outer(package.numpy.ones(2))
            except ZeroDivisionError:
                outer(package.numpy.ones(2))
        error = info.value
        cause = error.__cause__
        found.append((marks(error.__traceback__), error.__suppress_context__, repr(error.__context__),
                      getattr(error, "__notes__", None), type(cause).__name__))
        if cause is not None:
            found.append((str(cause), marks(cause.__traceback__), repr(cause.__context__), repr(cause.__cause__)))
    return found


def marks(entry):
    """The frames of this file, and whether there are others and whether these are marked."""
    frames = [frame for frame, _ in traceback.walk_tb(entry)]
    others = [frame for frame in frames if PACKAGES.search(frame.f_code.co_filename)]
    return ([frame.f_code.co_name for frame in frames if frame.f_code.co_filename == HERE], bool(others),
            bool(others) and all("__tracebackhide__" in frame.f_locals for frame in others))


@pytest.mark.parametrize("mode", ["tracebackhide", "remove_frames", "quiet_remove_frames", "off"])
def test_ways_of_filtering(mode):
    def raising(x):
        raise ValueError("no")

    def chained(x):
        try:
            fail()
        except ValueError as error:
            raise ValueError("again") from error

    old = jax.config.jax_traceback_filtering, styrax.config.jax_traceback_filtering
    try:
        for package in (jax, styrax):
            package.config.update("jax_traceback_filtering", mode)
        for function in (raising, chained):
            assert told(styrax, function) == told(jax, function)
    finally:
        for package, value in zip((jax, styrax), old):
            package.config.update("jax_traceback_filtering", value)


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
