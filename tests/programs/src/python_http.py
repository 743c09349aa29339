"""Python's ThreadingHTTPServer: a thread for each connection. `GET /N` answers the first N bytes of a file; SIGTERM ends it.

usage: python_http.py PORT_FILE FILE     a line `PORT PID` in PORT_FILE says that it listens
"""
import http.server
import os
import signal
import sys

with open(sys.argv[2], "rb") as f:
    BODY = f.read(4 << 20)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        size = self.path[1:]
        if not size.isdigit() or int(size) > len(BODY):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", size)
        self.end_headers()
        self.wfile.write(BODY[:int(size)])

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 4096


signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
with Server(("127.0.0.1", 0), Handler) as server:
    with open(sys.argv[1], "w") as f:
        f.write(f"{server.server_port} {os.getpid()}\n")
    server.serve_forever()
