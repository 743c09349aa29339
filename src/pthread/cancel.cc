// pthread_setcanceltype. pthread_cancel is in threads.cc, where it must agree with the end of threads.
#include "pthread/real.h"
#include "pthread/wait.h"

namespace upcall::pthread {

// Remembered: a thread that may be cancelled anywhere must not be while it waits without its mutex.
UPCALL_EXPORT int pthread_setcanceltype(int type, int* old) {
  bool valid = type == PTHREAD_CANCEL_ASYNCHRONOUS || type == PTHREAD_CANCEL_DEFERRED;
  // Before: with ASYNCHRONOUS glibc's may not return.
  if (type == PTHREAD_CANCEL_ASYNCHRONOUS && !symbols()) first_thread();
  if (valid && symbols() && !is_guest()) current()->asynchronous_cancel = type == PTHREAD_CANCEL_ASYNCHRONOUS;
  return real().setcanceltype(type, old);
}

}  // namespace upcall::pthread
