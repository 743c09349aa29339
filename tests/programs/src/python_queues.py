"""1,000 Python threads on queues: a ring that hands tokens on, then a pool on one shared queue."""
import queue
import sys
import threading

THREADS, TOKENS, ROUNDS, ITEMS = 1000, 16, 3, 20000

ring = [queue.Queue() for _ in range(THREADS)]
arrived = threading.Barrier(THREADS + 1)
finished = queue.Queue()
work, results = queue.Queue(maxsize=64), queue.Queue()


def member(me):
    arrived.wait()
    following = ring[(me + 1) % THREADS]
    while True:
        token = ring[me].get()
        if token is None:
            break
        name, hops = token
        if hops == THREADS * ROUNDS:
            finished.put((name, me))
        else:
            following.put((name, hops + 1))
    while True:
        item = work.get()
        if item is None:
            break
        results.put(item * item)


threads = [threading.Thread(target=member, args=(i,)) for i in range(THREADS)]
for thread in threads:
    thread.start()
arrived.wait()
alive = threading.active_count()

starts = {name: name * 7 % THREADS for name in range(TOKENS)}
for name, start in starts.items():
    ring[start].put((name, 0))
# A token that made whole rounds ends where it began.
ends = dict(finished.get() for _ in range(TOKENS))
for inbox in ring:
    inbox.put(None)
for i in range(ITEMS):
    work.put(i)
total = sum(results.get() for _ in range(ITEMS))
for _ in threads:
    work.put(None)
for thread in threads:
    thread.join()

print("alive", alive)
print("tokens home", ends == starts)
print("sum of squares", total)
right = ends == starts and total == sum(i * i for i in range(ITEMS)) and alive == THREADS + 1
sys.exit(0 if right else 1)
