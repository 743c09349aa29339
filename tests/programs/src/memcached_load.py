"""Load for a memcached: connections that know what they have stored and check every answer; then they end the server.

usage: memcached_load.py PORT_FILE

Waits until the server has written PORT_FILE (MEMCACHED_PORT_FILENAME), does a fixed number of random operations on
every connection, prints what was done, and sends SIGTERM to the process that the server says it is.
"""
import os
import random
import signal
import socket
import sys
import threading
import time

CONNECTIONS, ROUNDS, BATCH, KEYS = 12, 40, 25, 50
deadline = time.monotonic() + 100


def port_of(name):
    while time.monotonic() < deadline:
        try:
            with open(name) as f:
                for line in f:
                    if line.startswith("TCP INET: ") and line.endswith("\n"):
                        return int(line.split(":")[1])
        except FileNotFoundError:
            pass
        time.sleep(0.01)
    sys.exit("the server does not say where it listens")


class Connection(threading.Thread):
    """Keys of its own, so that it knows what every answer must be; and a counter that all of them increase."""

    def __init__(self, port, number):
        super().__init__(daemon=True)
        self.number, self.random = number, random.Random(number)
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rwb")
        self.known, self.counts, self.error = {}, {}, None

    def value(self):
        # A few do not fit into the buffers of a socket.
        size = self.random.choice((0, 1, 10, 100, 100, 1000, 1000, 20000))
        return self.random.randbytes(size)

    def command(self):
        """One random command: what to send, and a function that reads and checks the answer."""
        key = f"c{self.number}:{self.random.randrange(KEYS)}"
        kind = self.random.choice(("get", "get", "get", "set", "set", "add", "append", "delete", "incr"))
        self.counts[kind] = self.counts.get(kind, 0) + 1
        old = self.known.get(key)
        if kind == "get":
            return f"get {key}\r\n".encode(), lambda: self.check_value(key, old)
        if kind == "incr":
            return b"incr shared 1\r\n", lambda: self.check(self.line().isdigit(), "incr")
        if kind == "delete":
            self.known.pop(key, None)
            return f"delete {key}\r\n".encode(), lambda: self.expect(b"NOT_FOUND" if old is None else b"DELETED")
        value = self.value()
        stored = kind == "set" or (kind == "add") == (old is None)
        if stored:
            self.known[key] = old + value if kind == "append" else value
            if len(self.known[key]) > 500000:
                kind, self.known[key] = "set", value
        head = f"{kind} {key} 0 0 {len(value)}\r\n".encode()
        return head + value + b"\r\n", lambda: self.expect(b"STORED" if stored else b"NOT_STORED")

    def line(self):
        text = self.file.readline()
        self.check(text.endswith(b"\r\n"), f"the connection ended: {text[:40]}")
        return text[:-2]

    def check(self, right, what):
        if not right:
            raise ValueError(f"connection {self.number}: {what}")

    def expect(self, wanted):
        got = self.line()
        self.check(got == wanted, f"{got[:60]} instead of {wanted[:60]}")

    def check_value(self, key, wanted):
        if wanted is not None:
            self.expect(f"VALUE {key} 0 {len(wanted)}".encode())
            self.check(self.file.read(len(wanted) + 2) == wanted + b"\r\n", f"{key} has another value")
        self.expect(b"END")

    def run(self):
        try:
            for _ in range(ROUNDS):
                batch = [self.command() for _ in range(BATCH)]
                for text, _ in batch:
                    self.file.write(text)
                self.file.flush()
                for _, check in batch:
                    check()
            for key, value in sorted(self.known.items()):
                self.file.write(f"get {key}\r\n".encode())
                self.file.flush()
                self.check_value(key, value)
        except (OSError, ValueError) as error:
            self.error = error

    def figures(self):
        self.file.write(b"stats\r\n")
        self.file.flush()
        found = {}
        while (line := self.line()) != b"END":
            _, name, value = line.decode().split(" ", 2)
            found[name] = value
        return found


def main():
    port = port_of(sys.argv[1])
    control = Connection(port, -1)
    pid = int(control.figures()["pid"])
    try:
        control.file.write(b"set shared 0 0 1\r\n0\r\n")
        control.file.flush()
        control.expect(b"STORED")
        connections = [Connection(port, number) for number in range(CONNECTIONS)]
        for connection in connections:
            connection.start()
        for connection in connections:
            connection.join(max(1, deadline - time.monotonic()))
        wrong = [str(c.error or f"connection {c.number} has not ended")
                 for c in connections if c.error or c.is_alive()]
        if wrong:
            sys.exit("\n".join(wrong))
        counts = {kind: sum(c.counts.get(kind, 0) for c in connections) for kind in connections[0].counts}
        control.file.write(b"get shared\r\n")
        control.file.flush()
        total = str(counts["incr"]).encode()
        control.expect(b"VALUE shared 0 %d" % len(total))
        control.expect(total)
        control.expect(b"END")
        figures = control.figures()
        if figures["threads"] != "4" or int(figures["curr_connections"]) < CONNECTIONS + 1:
            sys.exit(f"{figures['threads']} threads, {figures['curr_connections']} connections")
        gets = counts["get"] + sum(len(c.known) for c in connections) + 1
        if int(figures["cmd_get"]) != gets:
            sys.exit(f"the server counted {figures['cmd_get']} gets instead of {gets}")
        for kind in sorted(counts):
            print(kind, counts[kind])
    finally:
        os.kill(pid, signal.SIGTERM)


main()
