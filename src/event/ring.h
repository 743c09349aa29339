// An io_uring instance for calls that have no form that does not wait, on descriptors that are not O_NONBLOCK.
#pragma once

#include <cstdint>

namespace upcall::event {

// connect(2) that does not wait, whatever the shared description says: what the kernel's own answers to such a call,
// -EINPROGRESS while the connection is on its way. -ENOSYS: there is no io_uring, or another thread uses it just now.
long try_connect(int socket, uint64_t address, uint32_t length) noexcept;
// From now on there is none: a filter of system calls is in force, which does not see what a ring does, and may end whoever asks
// for one.
void refuse_ring() noexcept;
// fork's child: the parent's is none of its business.
void forget_ring() noexcept;

}  // namespace upcall::event
