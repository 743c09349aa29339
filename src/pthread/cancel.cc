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

// Remembered: a thread that may be cancelled anywhere must not be while it waits without its mutex.
UPCALL_EXPORT int pthread_setcanceltype(int type, int* old) {
  // Before: with ASYNCHRONOUS glibc's may not return.
  if (symbols() && !is_guest()) current()->asynchronous_cancel = type == PTHREAD_CANCEL_ASYNCHRONOUS;
  return real().setcanceltype(type, old);
}

}  // namespace upcall::pthread
