// The driver's functions, one jump each, through a slot. A slot first holds the way to find the function, and after the first
// call the function itself (as a PLT's do), so that a process that never calls CUDA pays nothing. Threads that make the first
// call at once find the same.

#if !defined(__x86_64__)
#error "the launch shim knows x86-64 only: write its jumps for this processor"
#endif

.macro forward name, place
  .text
  .balign 16
  .globl \name
  .type \name, @function
\name:
  endbr64
  jmp *slot_\place(%rip)
first_\place:
  movl $\place, %r11d
  jmp find
  .size \name, . - \name

  .data
  .balign 8
slot_\place:
  .quad first_\place

  .section .rodata.names, "aMS", @progbits, 1
name_\place:
  .asciz "\name"

  .section .data.rel.ro.spillway_cuda_names, "aw", @progbits
  .quad name_\place
  .section .data.rel.ro.spillway_cuda_slots, "aw", @progbits
  .quad slot_\place
.endm

// The place of the function is in r11. All that may hold arguments is kept: eight vector registers (the upper halves are
// not used for arguments here) and six others; rax counts vectors where arguments vary.
.text
.balign 16
.type find, @function
find:
  endbr64
  pushq %rbp
  movq %rsp, %rbp
  pushq %rdi
  pushq %rsi
  pushq %rdx
  pushq %rcx
  pushq %r8
  pushq %r9
  pushq %rax
  pushq %r11
  subq $128, %rsp
  movups %xmm0, (%rsp)
  movups %xmm1, 16(%rsp)
  movups %xmm2, 32(%rsp)
  movups %xmm3, 48(%rsp)
  movups %xmm4, 64(%rsp)
  movups %xmm5, 80(%rsp)
  movups %xmm6, 96(%rsp)
  movups %xmm7, 112(%rsp)
  movq %r11, %rdi
  andq $-16, %rsp
  call spillway_cuda_bound_function
  leaq -192(%rbp), %rsp
  movups (%rsp), %xmm0
  movups 16(%rsp), %xmm1
  movups 32(%rsp), %xmm2
  movups 48(%rsp), %xmm3
  movups 64(%rsp), %xmm4
  movups 80(%rsp), %xmm5
  movups 96(%rsp), %xmm6
  movups 112(%rsp), %xmm7
  addq $128, %rsp
  popq %r11
  leaq spillway_cuda_slots(%rip), %rdx
  movq (%rdx, %r11, 8), %rdx
  movq %rax, (%rdx)
  movq %rax, %r11
  popq %rax
  popq %r9
  popq %r8
  popq %rcx
  popq %rdx
  popq %rsi
  popq %rdi
  popq %rbp
  jmp *%r11
.size find, . - find

.section .data.rel.ro.spillway_cuda_names, "aw", @progbits
.balign 8
.globl spillway_cuda_names
.hidden spillway_cuda_names
spillway_cuda_names:
.section .data.rel.ro.spillway_cuda_slots, "aw", @progbits
.balign 8
spillway_cuda_slots:

#include "functions.inc"  // forward NAME, PLACE: made of functions.txt

.section .note.GNU-stack, "", @progbits
