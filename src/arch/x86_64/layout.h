// Offsets shared by C++ and assembly. Asserted against the structures in sched/thread.h and
// activation/activation.h; one header so that the two languages cannot disagree.
#pragma once

// Thread: the saved context comes first.
#define T_RIP 0
#define T_RSP 8
#define T_RAX 16
#define T_RBX 24
#define T_RDX 32
#define T_RSI 40
#define T_RDI 48
#define T_RBP 56
#define T_R8 64
#define T_R9 72
#define T_R10 80
#define T_R12 88
#define T_R13 96
#define T_R14 104
#define T_R15 112
#define T_FLAGS 120
#define T_NR 128
#define T_FS 136
#define T_KIND 144
#define T_FPU 148
#define T_ATTENTION 152
#define T_MXCSR 156
#define T_FCW 160
#define T_NATIVE 164
#define T_SIGFRAME 168
#define T_VECTORS 1024
#define T_VECTORS_SIZE 2112
#define T_X87 3136
#define T_SIZE 3264

// Thread::kind
#define CONTEXT_REGISTERS 0
#define CONTEXT_SIGNAL_FRAME 1

// Thread::fpu: what must be loaded again when the thread resumes (bits)
#define FPU_LIVE 0
#define FPU_CONTROL 1
#define FPU_VECTORS 2
#define FPU_X87 4  // values on the x87 register stack

// Control words between threads.
#define DEFAULT_MXCSR 0x1f80
#define DEFAULT_FCW 0x37f

// Activation, through GS.
#define A_SELF 0
#define A_IN_RUNTIME 8
#define A_RESCHED 12
#define A_STACK 16
#define A_CURRENT 24
#define A_INTERRUPT 32
#define A_LOST 36

// Substitution stubs (linux/patch): distance from the restart point to the return point.
#define STUB_RESTART_OFFSET 22

#define SYSCALL_TABLE_SIZE 512
