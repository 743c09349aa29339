// Descriptors of the event manager's own, under numbers that are in nobody's way. The program has none of these numbers.
#pragma once

#include <cstdint>

namespace upcall::event {

inline constexpr int none = -1;

enum class Own : uint8_t { epoll, ring };
inline constexpr Own all_own[] = {Own::epoll, Own::ring};

int number_of(Own which) noexcept;  // none: it has not been made
// `made` is kept from now on, or, where another thread was faster, closed. The number that is kept.
int keep(Own which, int made) noexcept;
bool is_own(int descriptor) noexcept;
// The lowest one not below `first`; none.
int next_own(int first) noexcept;
// The program wants that number for itself.
void give_up_number(int descriptor) noexcept;
void close_own(Own which) noexcept;

}  // namespace upcall::event
