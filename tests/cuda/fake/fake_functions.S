// All of the driver's functions: each tells fake_cuda_called() its name and the arguments that stand in registers, and returns
// what that returns. Those that fake_driver.cpp defines are taken from there.
.macro fake name
  .text
  .weak \name
  .type \name, @function
\name:
  pushq %rbp
  movq %rsp, %rbp
  pushq %r9
  pushq %r8
  pushq %rcx
  pushq %rdx
  pushq %rsi
  pushq %rdi
  movq %rsp, %rsi
  leaq name_of_\name(%rip), %rdi
  call fake_cuda_called@PLT
  leave
  ret
  .size \name, . - \name
  .globl other_\name
  .type other_\name, @function
other_\name:  // the same function at another address
  jmp \name@PLT
  .size other_\name, . - other_\name
  .section .rodata
name_of_\name:
  .asciz "\name"
.endm

#include "fake_functions.inc"  // fake NAME: made of functions.txt

.section .note.GNU-stack, "", @progbits
