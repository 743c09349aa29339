// Linked by the program: initialised and zeroed thread-local data of a library.
static __thread int initialised = 77;
static __thread char zeroed[300];

extern "C" __attribute__((visibility("default"))) int tls_library_fresh() {
  int fresh = initialised == 77;
  for (char c : zeroed) fresh = fresh && c == 0;
  initialised = -1;
  for (char& c : zeroed) c = 1;
  return fresh;
}
