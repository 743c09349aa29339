// pthread_cancel: glibc's marks the thread, and signals it if it may be cancelled anywhere. A wait of ours is neither a
// system call that glibc would have made cancelable nor ended by a mark: the runtime is told.
#include "pthread/real.h"
#include "pthread/wait.h"

namespace upcall::pthread {

UPCALL_EXPORT int pthread_cancel(pthread_t thread) {
  int error = real().cancel(thread);
  if (!error && symbols() && started() && !is_guest())
    native(linux_abi::post_cancel, reinterpret_cast<void*>(thread));
  return error;
}

}  // namespace upcall::pthread
