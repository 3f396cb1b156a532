"""Moving words between the threads of a row through shared memory, to places that the data decides.

Triton has no scatter into shared memory, and its gather within one warp is a shuffle for every pair of registers. So
one buffer is declared in PTX, and stored to and loaded from by address. Word i lives at i ^ (i / 32 mod 32): neither
runs of 2, 4, 8 nor of 32 words a thread then meet in a bank. Every use ends in a barrier, so the next may overwrite.

Without `PTX` (the interpreter, other makers' chips) the same movements go through Triton and device memory.
"""

import triton
import triton.language as tl
from triton.runtime.jit import constexpr_function


@constexpr_function
def _declaration(words):
    return f"{{ .shared .align 16 .b8 plackett_words[{4 * words}]; mov.u32 $0, plackett_words; }}"


@triton.jit
def buffer(WORDS: tl.constexpr, PTX: tl.constexpr):
    """The address of `WORDS` words of shared memory; call it once a kernel."""
    if PTX:
        return tl.inline_asm_elementwise(_declaration(WORDS), "=r,r", [tl.program_id(0)], tl.int32, False, 1)
    else:
        return 0


@triton.jit
def _address(base, i):
    return base + ((i ^ ((i >> 5) & 31)) << 2)


@triton.jit
def _put(base, i, x):
    word = x.to(tl.int32, bitcast=True)
    tl.inline_asm_elementwise(
        "st.shared.b32 [$1], $2; mov.b32 $0, 0;", "=r,r,r", [_address(base, i), word], tl.int32, False, 1
    )


@triton.jit
def exchange(base, x, places, wanted):
    """The 32-bit values `x` are put at `places`; returns what then stands at `wanted`."""
    _put(base, places, x)
    tl.debug_barrier()
    word = tl.inline_asm_elementwise("ld.shared.b32 $0, [$1];", "=r,r", [_address(base, wanted)], tl.int32, False, 1)
    tl.debug_barrier()
    return word.to(x.dtype, bitcast=True)


@triton.jit
def gather(base, x, places, wanted, PTX: tl.constexpr):
    """`exchange` where `x` stands in the order of `places` already."""
    if PTX:
        return exchange(base, x, places, wanted)
    else:
        found = tl.gather(tl.reshape(x, [x.numel]), tl.reshape(wanted, [wanted.numel]), 0)
        return tl.reshape(found, wanted.shape)
