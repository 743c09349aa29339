// The first net: until a program makes its first thread nothing of it is redirected but three places in libc (clone,
// clone3, syscall), found without a decode, so that a program without threads pays some ten microseconds.
#pragma once

namespace upcall::patch {

// False: they are not where they are looked for (another libc, other names in front of libc's); nothing has changed.
bool arm_early() noexcept;
// Puts libc's bytes back.
void disarm_early() noexcept;
// Since then: has the engine redirected clone?
bool early_sites_redirected() noexcept;

}  // namespace upcall::patch
