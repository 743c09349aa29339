// An object with fork handlers of its own; glibc takes them back when it is unloaded.
#include <pthread.h>

extern "C" {
int plugin_prepared = 0, plugin_parent = 0, plugin_child = 0;
int plugin_register(int* order);
}

static int* g_order;

int plugin_register(int* order) {
  g_order = order;
  return pthread_atfork([] { plugin_prepared = ++*g_order; }, [] { plugin_parent = ++*g_order; },
                        [] { plugin_child = ++*g_order; });
}
