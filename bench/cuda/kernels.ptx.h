#pragma once

// The probe's kernels as text that the driver compiles for whichever GPU there is.
namespace spillway::probe {

inline constexpr const char* kKernels = R"ptx(
.version 7.0
.target sm_70
.address_size 64

.visible .entry nothing() { ret; }

// spin(nanoseconds)
.visible .entry spin(.param .u64 p_wait) {
  .reg .u64 %rd<5>;
  .reg .pred %p;
  ld.param.u64 %rd1, [p_wait];
  mov.u64 %rd2, %globaltimer;
again:
  mov.u64 %rd3, %globaltimer;
  sub.u64 %rd4, %rd3, %rd2;
  setp.lt.u64 %p, %rd4, %rd1;
  @%p bra again;
  ret;
}

// burn(out, steps): so many dependent multiplications and additions a thread
.visible .entry burn(.param .u64 p_out, .param .u32 p_steps) {
  .reg .u64 %rd<2>;
  .reg .u32 %r<3>;
  .reg .f32 %f<4>;
  .reg .pred %p;
  ld.param.u64 %rd1, [p_out];
  ld.param.u32 %r1, [p_steps];
  mov.f32 %f1, 0f3F800000;
  mov.f32 %f2, 0f3F7FFF00;
  mov.f32 %f3, 0f35000000;
again:
  fma.rn.f32 %f1, %f1, %f2, %f3;
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p, %r1, 0;
  @%p bra again;
  setp.eq.f32 %p, %f1, 0f00000000;
  @%p st.global.f32 [%rd1], %f1;
  ret;
}

// store(at, words, value)
.visible .entry store(.param .u64 p_at, .param .u32 p_words, .param .u32 p_value) {
  .reg .u64 %rd<4>;
  .reg .u32 %r<7>;
  .reg .pred %p;
  ld.param.u64 %rd1, [p_at];
  ld.param.u32 %r1, [p_words];
  ld.param.u32 %r2, [p_value];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.u32 %r5, %r3, %r4, %r5;
  mov.u32 %r6, %nctaid.x;
  mul.lo.u32 %r6, %r6, %r4;
again:
  setp.ge.u32 %p, %r5, %r1;
  @%p ret;
  mul.wide.u32 %rd2, %r5, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r2;
  add.u32 %r5, %r5, %r6;
  bra again;
}

// store_for(at, words, value, nanoseconds): stores to all of it again and again for so long
.visible .entry store_for(.param .u64 p_at, .param .u32 p_words, .param .u32 p_value, .param .u64 p_wait) {
  .reg .u64 %rd<8>;
  .reg .u32 %r<8>;
  .reg .pred %p;
  ld.param.u64 %rd1, [p_at];
  ld.param.u32 %r1, [p_words];
  ld.param.u32 %r2, [p_value];
  ld.param.u64 %rd4, [p_wait];
  mov.u64 %rd5, %globaltimer;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.u32 %r5, %r3, %r4, %r5;
  mov.u32 %r6, %nctaid.x;
  mul.lo.u32 %r6, %r6, %r4;
again:
  mov.u32 %r7, %r5;
next:
  setp.ge.u32 %p, %r7, %r1;
  @%p bra check;
  mul.wide.u32 %rd2, %r7, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.volatile.global.u32 [%rd3], %r2;
  add.u32 %r7, %r7, %r6;
  bra next;
check:
  mov.u64 %rd6, %globaltimer;
  sub.u64 %rd7, %rd6, %rd5;
  setp.lt.u64 %p, %rd7, %rd4;
  @%p bra again;
  ret;
}

// sum(from, words, to)
.visible .entry sum(.param .u64 p_from, .param .u32 p_words, .param .u64 p_to) {
  .reg .u64 %rd<5>;
  .reg .u32 %r<9>;
  .reg .pred %p;
  ld.param.u64 %rd1, [p_from];
  ld.param.u32 %r1, [p_words];
  ld.param.u64 %rd4, [p_to];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.u32 %r5, %r3, %r4, %r5;
  mov.u32 %r6, %nctaid.x;
  mul.lo.u32 %r6, %r6, %r4;
  mov.u32 %r7, 0;
again:
  setp.ge.u32 %p, %r5, %r1;
  @%p bra end;
  mul.wide.u32 %rd2, %r5, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r8, [%rd3];
  add.u32 %r7, %r7, %r8;
  add.u32 %r5, %r5, %r6;
  bra again;
end:
  red.global.add.u32 [%rd4], %r7;
  ret;
}
)ptx";

}  // namespace spillway::probe
