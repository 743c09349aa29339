"""Asks an HTTP server for the first N bytes of a file, many connections at a time, and compares every answer.

usage: http_check.py PORT FILE PREFIX SIZE...     asks for PREFIX/SIZE

Each connection asks for all sizes in an order of its own, several times; one sends all its requests before it reads.
Prints how many answers and bytes were right; the exit status is 1 if any was not.
"""
import http.client
import random
import socket
import sys
import threading

CONNECTIONS, ROUNDS = 40, 5
PORT, PREFIX, SIZES = int(sys.argv[1]), sys.argv[3], [int(size) for size in sys.argv[4:]]
with open(sys.argv[2], "rb") as f:
    DATA = f.read(max(SIZES))
lock = threading.Lock()
answers, total, wrong = 0, 0, []


def right(path, status, body, wanted_status, wanted):
    global answers, total
    with lock:
        if status != wanted_status or (wanted is not None and body != wanted):
            wrong.append(f"{path}: status {status}, {len(body)} bytes")
        answers += 1
        total += len(body) if wanted is not None else 0


def ask(number):
    order = random.Random(number)
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30)
    try:
        for _ in range(ROUNDS):
            for size in order.sample(SIZES, len(SIZES)):
                path = f"{PREFIX}/{size}"
                connection.request("GET", path)
                response = connection.getresponse()
                right(path, response.status, response.read(), 200, DATA[:size])
        connection.request("GET", f"{PREFIX}/none")
        response = connection.getresponse()
        right("none", response.status, response.read(), 404, None)
    except (OSError, http.client.HTTPException) as error:
        wrong.append(f"connection {number}: {error!r}")
    finally:
        connection.close()


def ask_ahead():
    """All requests at once, the answers in the same order."""
    path = f"{PREFIX}/{min(SIZES)}"
    with socket.create_connection(("127.0.0.1", PORT), timeout=30) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 20)
        file = connection.makefile("rb")
        for _ in range(20):
            status, length = int(file.readline().split()[1]), 0
            while (line := file.readline().strip()):
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            right(path, status, file.read(length), 200, DATA[:min(SIZES)])


threads = [threading.Thread(target=ask, args=(i,)) for i in range(CONNECTIONS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
ask_ahead()
if wrong:
    sys.exit("\n".join(wrong[:5]))
print(answers, "answers,", total, "bytes")
