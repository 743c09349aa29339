// The event source for descriptors: one edge-triggered epoll instance (epoll(7)), hidden from the program.
#pragma once

#include <cstdint>

#include "activation/activation.h"

namespace upcall::event {

inline constexpr uint32_t readable = 0x001, urgent = 0x002, writable = 0x004, failed = 0x008, hung_up = 0x010,
                          peer_closed = 0x2000;

// Called for each event, with what the kernel says of the descriptor: makes threads ready. Set before the first watch.
extern void (*g_descriptor_event)(activation::Activation* a, int descriptor, uint32_t mask);

// From now on the kernel tells when `descriptor` becomes ready for what is in `mask`, and at once if it is. `known`: the
// instance has it already, for less. 0 or -errno (EPERM: a kind that never makes anybody wait).
long watch(int descriptor, uint32_t mask, bool known) noexcept;
void unwatch(int descriptor) noexcept;
// fork's child: it has none of the parent's.
void forget_instance() noexcept;

}  // namespace upcall::event
