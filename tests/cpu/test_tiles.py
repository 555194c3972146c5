"""Programs that use matrix units, on hosts that need not have them: tests of products with emulated units."""

import pytest

from styrax.compile.lowering import tile_products
from styrax.cpu import tiles
from tests.compat.running import run

PROGRAM = """
import sys
import pytest
from tests.cpu import emulated_tiles
emulated_tiles.install()
sys.exit(pytest.main(["-q", "--tb=short", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


@pytest.mark.parametrize("arguments", [
    ["tests/compile/test_kernel_products.py"],
    ["tests/lax/test_convolution.py", "-k", "short_numbers or infinities or windows"],
], ids=lambda arguments: arguments[0])
def test_emulated(arguments, tmp_path):
    done = run("-c", PROGRAM, *arguments, STYRAX_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


def test_compiler_and_kernels_agree():
    assert (tile_products.EDGE, tile_products.BLOCKS) == (tiles.EDGE, tiles.BLOCKS)
