"""sin, cos, tan.

The nearest multiple n of pi/2 is subtracted, and n modulo 4 says which polynomial and sign to take. Up to
LIMIT, pi/2 in three parts and fma suffice; when any lane is larger, a real branch goes to a fixed-point
reduction that multiplies by as many bits of 1/pi as it takes (Payne and Hanek's method).
"""
from __future__ import annotations

from .block import Block, Register, float_kind, float_text, int_kind

# pi as a sum of numbers of the dtype
PI_PARTS = (
    (3.1415927410125732, -8.742277657347586e-08, -3.4302490200117637e-15),
    (3.141592653589793, 1.2246467991473532e-16, -2.9947698097183397e-33),
)
LIMIT = (9.0e4, 1.0e9)
# sin(r) = r + r**3 * row(r**2), |r| <= pi/4
SIN_ROW = (
    (-0.16666655, 0.008332189, -0.0001951829),
    (
        -0.1666666666666663, 0.00833333333332184, -0.00019841269829358547, 2.7557313538540763e-06,
        -2.505073439858964e-08, 1.5895434253318722e-10,
    ),
)  # fmt: skip
# cos(r) = 1 - r**2/2 + r**4 * row(r**2), |r| <= pi/4
COS_ROW = (
    (0.041666646, -0.001388731, 2.4432366e-05),
    (
        0.041666666666666595, -0.0013888888888873342, 2.4801587289001998e-05, -2.7557314216981824e-07,
        2.0875705383326694e-09, -1.1358748329183505e-11,
    ),
)  # fmt: skip
# tan(r) = r + r**3 * row(r**2), |r| <= pi/4
TAN_ROW = (
    (0.3333335, 0.13332675, 0.054058887, 0.021286482, 0.010826405, 9.993597e-05, 0.004371698),
    (
        0.33333333333333376, 0.13333333333325817, 0.05396825397264433, 0.021869488406453422,
        0.00886323780600945, 0.0035921021061513054, 0.001456036777287064, 0.0005889086164007275,
        0.00024359341260434374, 8.396373574041631e-05, 6.64821204671827e-05, -2.4694747097959223e-05,
        4.784923081647028e-05, -2.388289130259008e-05, 9.711724293241998e-06,
    ),
)  # fmt: skip


def reduce(b: Block, x: Register, low: bool = False) -> list[Register]:
    """[r, bits whose lowest two are n modulo 4] with x = n*pi/2 + r, and the low part of r if asked for.

    `x` must be frozen.
    """
    n, n_bits = b.nearest(x, 0.6366197723675814)
    first, second, third = (-0.5 * part for part in b.pick(*PI_PARTS))
    exact = b.fma(n, first, x)
    if not low:
        return reduce_huge(b, x, [b.fma(n, third, b.fma(n, second, exact)), n_bits])
    product, product_low = b.two_product(n, b.constant(second))
    total, total_low = b.two_sum(exact, product)
    r, r_low = b.fast_two_sum(total, b.fma(n, third, product_low + total_low))
    return reduce_huge(b, x, [r, n_bits, r_low])


def sine_and_cosine(b: Block, r: Register, quadrant: Register) -> tuple[Register, Register]:
    """The sine and the cosine of r + quadrant*pi/2 for |r| <= pi/4."""
    square = r * r
    sine = b.fma(r * square, b.poly(square, b.pick(*SIN_ROW)), r)
    cosine = b.fma(square, b.fma(square, b.poly(square, b.pick(*COS_ROW)), -0.5), 1.0)
    odd = b.ne_int(quadrant & 1, 0)

    def signed(y: Register, quadrant: Register) -> Register:
        sign = (quadrant << (quadrant.kind.bits - 2)) & b.sign_bit(quadrant.kind)
        return b.floats(b.bits(y) ^ sign)

    return signed(b.select(odd, cosine, sine), quadrant), signed(b.select(odd, sine, cosine), quadrant + 1)


def sin_cos(b: Block, x: Register) -> tuple[Register, Register]:
    x = b.freeze(x)
    sine, cosine = sine_and_cosine(b, *reduce(b, x))
    return b.select(b.eq(x, 0.0), x, sine), cosine


def tan(b: Block, x: Register) -> Register:
    x = b.freeze(x)
    r, n_bits, low = reduce(b, x, low=True)
    square = r * r
    # tan(r + low) is about tan(r) + low*(1 + r**2).
    t = r + b.fma(r * square, b.poly(square, b.pick(*TAN_ROW)), b.fma(low, square, low))
    odd = b.ne_int(n_bits & 1, 0)
    y = b.select(odd, b.constant(-1.0), t) / b.select(odd, t, 1.0)
    return b.select(b.eq(x, 0.0), x, y)


def reduce_huge(b: Block, x: Register, usual: list[Register]) -> list[Register]:
    """`usual`, the results of `reduce`, with the lanes beyond LIMIT done again exactly."""
    limit = b.pick(*LIMIT)

    def rare():
        name = "quarter_remainder"
        b.depend(name)
        kinds = (b.float, b.int, b.float)
        results = f"{{ {', '.join([k.text for k in kinds])} }}"
        call = f"call {results} @styrax.{name}.{b.dtype}.{b.lanes}({b.float.text} {x.name})"
        all_results = b.emit(b.float, call)
        exact = [
            b.emit(kind, f"extractvalue {results} {all_results.name}, {i}")
            for i, kind in enumerate(kinds[: len(usual)])
        ]
        large = b.not_lt(b.abs(x), limit)
        return [b.select(large, e, u) for e, u in zip(exact, usual)]

    return b.rarely(b.any(b.abs(x) > limit), usual, rare)


def inverse_pi_bits() -> tuple[str, tuple]:
    """64 zero bits, then the bits of 1/pi behind the point, as bytes in reversed order."""
    bits = 1312
    unit = 1 << (bits + 64)

    def arctan_of_inverse(n: int) -> int:
        term = total = unit // n
        square, k, sign = n * n, 1, 1
        while term:
            term //= square
            k, sign = k + 2, -sign
            total += sign * (term // k)
        return total

    pi = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))
    data = (unit * unit // pi >> 64).to_bytes(bits // 8 + 8, "little")
    text = "".join([f"\\{byte:02X}" for byte in data])
    return f'@styrax.inverse_pi_bits = internal unnamed_addr constant [{len(data)} x i8] c"{text}"\n', ()


TABLE_BYTES = 172

# x = m * 2**e. A window of 192 bits of 1/pi, from the bit whose product with 2**e is 1, times m: the upper
# 128 bits, modulo 2**128, are x/(pi/2) modulo 4 in fixed point. No double comes closer than 2**-62 to a
# multiple of pi/2, so that the 126 bits of the fraction leave 64 that count.
SCALAR_REMAINDER = """\
define internal {{ double, i64, double }} @styrax.quarter_remainder.f64.1(double %x)
    noinline nounwind optnone {{
  %bits = bitcast double %x to i64
  %shifted = lshr i64 %bits, 52
  %exponent = and i64 %shifted, 2047
  %fraction = and i64 %bits, 4503599627370495
  %mantissa = or i64 %fraction, 4503599627370496
  %e = sub i64 %exponent, 1075
  %low = icmp slt i64 %e, -60
  %clamped = select i1 %low, i64 -60, i64 %e
  %position = add i64 %clamped, 63
  %byte = lshr i64 %position, 3
  %bit = and i64 %position, 7
  %offset = sub i64 {last}, %byte
  %address0 = getelementptr i8, ptr @styrax.inverse_pi_bits, i64 %offset
  %address1 = getelementptr i8, ptr %address0, i64 8
  %address2 = getelementptr i8, ptr %address0, i64 16
  %loaded0 = load i64, ptr %address0, align 1
  %loaded1 = load i64, ptr %address1, align 1
  %loaded2 = load i64, ptr %address2, align 1
  %window0 = shl i64 %loaded0, %bit
  %window1 = call i64 @llvm.fshl.i64(i64 %loaded1, i64 %loaded0, i64 %bit)
  %window2 = call i64 @llvm.fshl.i64(i64 %loaded2, i64 %loaded1, i64 %bit)
  %m = zext i64 %mantissa to i128
  %wide0 = zext i64 %window0 to i128
  %wide1 = zext i64 %window1 to i128
  %product0 = mul i128 %wide0, %m
  %product1 = mul i128 %wide1, %m
  %carry = lshr i128 %product0, 64
  %sum = add i128 %product1, %carry
  %low.word = trunc i128 %sum to i64
  %upper = lshr i128 %sum, 64
  %upper.word = trunc i128 %upper to i64
  %product2 = mul i64 %window2, %mantissa
  %high.word = add i64 %upper.word, %product2
  %rounded = add i64 %high.word, {half}
  %multiple = lshr i64 %rounded, 62
  %opposite.multiple = sub i64 0, %multiple
  %below.zero = icmp slt i64 %bits, 0
  %quadrant = select i1 %below.zero, i64 %opposite.multiple, i64 %multiple
  %high.int = call i64 @llvm.fshl.i64(i64 %high.word, i64 %low.word, i64 2)
  %low.bits = shl i64 %low.word, 2
  %low.int = lshr i64 %low.bits, 1
  %high = sitofp i64 %high.int to double
  %high.back = fptosi double %high to i64
  %middle.int = sub i64 %high.int, %high.back
  %middle = sitofp i64 %middle.int to double
  %low.float = sitofp i64 %low.int to double
  %tail = call double @llvm.fma.f64(double %low.float, double {low_unit}, double %middle)
  %main = fmul double %high, {unit}
  %minus.main = fneg double %main
  %rest0 = call double @llvm.fma.f64(double %high, double {unit}, double %minus.main)
  %rest1 = call double @llvm.fma.f64(double %high, double {unit_low}, double %rest0)
  %rest = call double @llvm.fma.f64(double %tail, double {unit}, double %rest1)
  %angle = fadd double %main, %rest
  %moved = fsub double %angle, %main
  %error = fsub double %rest, %moved
  %sign = select i1 %below.zero, double -1.0, double 1.0
  %finite = icmp ne i64 %exponent, 2047
  %factor = select i1 %finite, double %sign, double 0x7FF8000000000000
  %remainder = fmul double %angle, %factor
  %low.remainder = fmul double %error, %factor
  %one = insertvalue {{ double, i64, double }} poison, double %remainder, 0
  %two = insertvalue {{ double, i64, double }} %one, i64 %quadrant, 1
  %all = insertvalue {{ double, i64, double }} %two, double %low.remainder, 2
  ret {{ double, i64, double }} %all
}}
"""

VECTOR_REMAINDER = """\
define internal {{ {F}, {I}, {F} }} @styrax.quarter_remainder.{dtype}.{lanes}({F} %x)
    noinline nounwind optnone {{
entry:
  %xs = alloca {F}
  %rs = alloca {F}
  %ns = alloca {I}
  %ls = alloca {F}
  store {F} %x, ptr %xs
  br label %lane
lane:
  %i = phi i64 [ 0, %entry ], [ %next, %lane ]
  %xp = getelementptr {f}, ptr %xs, i64 %i
  %rp = getelementptr {f}, ptr %rs, i64 %i
  %np = getelementptr {i}, ptr %ns, i64 %i
  %lp = getelementptr {f}, ptr %ls, i64 %i
  %xi = load {f}, ptr %xp
{body}
  store {f} %r, ptr %rp
  store {i} %n, ptr %np
  store {f} %l, ptr %lp
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {lanes}
  br i1 %more, label %lane, label %done
done:
  %rv = load {F}, ptr %rs
  %nv = load {I}, ptr %ns
  %lv = load {F}, ptr %ls
  %one = insertvalue {{ {F}, {I}, {F} }} poison, {F} %rv, 0
  %two = insertvalue {{ {F}, {I}, {F} }} %one, {I} %nv, 1
  %all = insertvalue {{ {F}, {I}, {F} }} %two, {F} %lv, 2
  ret {{ {F}, {I}, {F} }} %all
}}
"""
SINGLE_LANE = """\
  %wide = fpext float %xi to double
  %result = call { double, i64, double } @styrax.quarter_remainder.f64.1(double %wide)
  %r.wide = extractvalue { double, i64, double } %result, 0
  %n.wide = extractvalue { double, i64, double } %result, 1
  %r = fptrunc double %r.wide to float
  %n = trunc i64 %n.wide to i32
  %r.back = fpext float %r to double
  %l.wide = fsub double %r.wide, %r.back
  %l = fptrunc double %l.wide to float"""
DOUBLE_LANE = """\
  %result = call { double, i64, double } @styrax.quarter_remainder.f64.1(double %xi)
  %r = extractvalue { double, i64, double } %result, 0
  %n = extractvalue { double, i64, double } %result, 1
  %l = extractvalue { double, i64, double } %result, 2"""


def quarter_remainder(dtype: str, lanes: int) -> tuple[str, tuple]:
    """(remainder, multiple modulo 4, low part of the remainder) of the division by pi/2 of each lane."""
    if dtype == "f64" and lanes == 1:
        text = SCALAR_REMAINDER.format(
            last=TABLE_BYTES - 24,
            half=1 << 61,
            low_unit=float_text(2.0**-63, 64),
            unit=float_text(PI_PARTS[1][0] * 2.0**-65, 64),
            unit_low=float_text(PI_PARTS[1][1] * 2.0**-65, 64),
        )
        return text, (("inverse_pi_bits", "f64", 1),)
    single = dtype == "f32"
    floats = float_kind(dtype, lanes)
    text = VECTOR_REMAINDER.format(
        F=floats.text,
        I=int_kind(floats.bits, lanes).text,
        f=floats.element,
        i=f"i{floats.bits}",
        dtype=dtype,
        lanes=lanes,
        body=SINGLE_LANE if single else DOUBLE_LANE,
    )
    return text, (("quarter_remainder", "f64", 1),)


FUNCTIONS = {"sin_cos": sin_cos, "tan": tan}
TEXTS = {"quarter_remainder": quarter_remainder, "inverse_pi_bits": lambda dtype, lanes: inverse_pi_bits()}
