// Benchmarks of creating and joining threads.
#include <errno.h>
#include <string.h>

#include "worker.h"

static void* identity(void* argument) { return argument; }

// Create and join one empty thread after the other.
struct result null_fork(const struct options* options) {
  enum { CHUNK = 200 };
  long done = 0;
  uint64_t end = 0;
  for (long i = 0; i < CHUNK; ++i) join_thread(start_thread(identity, NULL));  // warm caches and stacks
  uint64_t begin = now();
  do {
    for (long i = 0; i < CHUNK; ++i, ++done) {
      void* token = (void*)(intptr_t)(done + 1);
      void* back = join_thread(start_thread(identity, token));
      EXPECT(back == token, "null_fork: thread %ld returned %p, not %p", done, back, token);
    }
    end = now();
  } while (end - begin < duration(options));
  return (struct result){.value = (double)(end - begin) / (double)done, .count = done};
}

static pthread_mutex_t held_back = PTHREAD_MUTEX_INITIALIZER;
static long let_go;

static void* alive(void* argument) {
  pthread_mutex_lock(&held_back);
  ++let_go;
  pthread_mutex_unlock(&held_back);
  return argument;
}

// Many threads alive at the same time, then joined. The creator holds a mutex until the last one is made, and
// no thread can end before it has had it. Of the gates tried (mutex, semaphore, barrier, rwlock) this one
// costs kernel threads least, about 35 us a thread in all.
struct result fork_batch(const struct options* options) {
  long count = thread_count(options, 10000);
  pthread_t* threads = calloc((size_t)count, sizeof *threads);
  EXPECT(threads != NULL, "fork_batch: out of memory");
  uint64_t begin = now();
  pthread_mutex_lock(&held_back);
  for (long i = 0; i < count; ++i) threads[i] = start_thread(alive, (void*)(intptr_t)(i + 1));
  long early = let_go;
  pthread_mutex_unlock(&held_back);
  for (long i = 0; i < count; ++i) {
    void* back = join_thread(threads[i]);
    EXPECT(back == (void*)(intptr_t)(i + 1), "fork_batch: thread %ld returned %p", i, back);
  }
  uint64_t end = now();
  EXPECT(early == 0 && let_go == count, "fork_batch: %ld threads early, %ld in all, not %ld", early, let_go,
         count);
  free(threads);
  return (struct result){.value = (double)(end - begin) / (double)count, .count = count};
}

enum { LEAF = 32 };

struct node {
  const int* begin;
  long length;
  long sum;
  long nodes;
};

static void* sum_node(void* argument) {
  struct node* node = argument;
  node->nodes = 1;
  node->sum = 0;
  if (node->length <= LEAF) {
    for (long i = 0; i < node->length; ++i) node->sum += node->begin[i];
    return node;
  }
  long half = node->length / 2;
  struct node child[2] = {{.begin = node->begin, .length = half},
                          {.begin = node->begin + half, .length = node->length - half}};
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) threads[i] = start_thread(sum_node, &child[i]);
  for (int i = 0; i < 2; ++i) {
    EXPECT(join_thread(threads[i]) == &child[i], "dc_sum: wrong thread joined");
    node->sum += child[i].sum;
    node->nodes += child[i].nodes;
  }
  return node;
}

// Sum of an array by divide and conquer, a thread per node of the tree: 8,191 threads for 4,096 leaves.
struct result dc_sum(const struct options* options) {
  long leaves = 4096;
  while (leaves > 2 && (double)leaves > 4096 * options->scale) leaves /= 2;
  long length = leaves * LEAF;
  int* numbers = malloc((size_t)length * sizeof *numbers);
  EXPECT(numbers != NULL, "dc_sum: out of memory");
  long expected = 0;
  for (long i = 0; i < length; ++i) {
    numbers[i] = (int)((i * 7919) % 1000) - 300;
    expected += numbers[i];
  }
  struct node root = {.begin = numbers, .length = length};
  uint64_t begin = now();
  join_thread(start_thread(sum_node, &root));
  uint64_t end = now();
  EXPECT(root.sum == expected, "dc_sum: sum %ld, not %ld", root.sum, expected);
  EXPECT(root.nodes == 2 * leaves - 1, "dc_sum: %ld threads, not %ld", root.nodes, 2 * leaves - 1);
  free(numbers);
  return (struct result){.value = (double)(end - begin) / (double)root.nodes,
                         .count = root.nodes,
                         .details = {{"total_ms", (double)(end - begin) / 1e6}}};
}
