"""Powers, logarithms and reciprocals as one instruction each where PTX has one: to 2^-22, zero below 2^-126."""

import triton
import triton.language as tl


@triton.jit
def exp2(x, PTX: tl.constexpr):
    if PTX:
        return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=r,r", [x], tl.float32, True, 1)
    else:
        return tl.exp2(x)


@triton.jit
def log2(x, PTX: tl.constexpr):
    if PTX:
        return tl.inline_asm_elementwise("lg2.approx.ftz.f32 $0, $1;", "=r,r", [x], tl.float32, True, 1)
    else:
        return tl.log2(x)


@triton.jit
def reciprocal(x, PTX: tl.constexpr):
    if PTX:
        return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=r,r", [x], tl.float32, True, 1)
    else:
        return 1.0 / x


@triton.jit
def log1p(x, PTX: tl.constexpr):
    """log(1 + x), x >= 0, to a few units in the last place also where 1 + x rounds to 1."""
    p = x * -0.0274653017 + 0.0867877124
    p = p * x - 0.146816128
    p = p * x + 0.195812062
    p = p * x - 0.249502214
    p = p * x + 0.333303669
    p = p * x - 0.499999318
    p = p * x + 0.999999997
    return tl.where(x < 0.5, p * x, log2(1.0 + x, PTX) * 0.6931471805599453)
