// The echo server of bench/server.c with Go's net package: a goroutine for each connection, the same blocking way to write it.
// Prints "ADDRESS RUNTIME" when it is ready; ends with its standard input.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
)

func fail(what string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
	os.Exit(1)
}

func serve(connection net.Conn) {
	defer connection.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := connection.Read(buffer)
		if err != nil {
			return
		}
		if _, err := connection.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func main() {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		fail("listen", err)
	}
	go func() {
		for {
			// Go sets TCP_NODELAY itself.
			connection, err := listener.Accept()
			if err != nil {
				fail("accept", err)
			}
			go serve(connection)
		}
	}()
	fmt.Printf("%d %s\n", listener.Addr().(*net.TCPAddr).Port, runtime.Version())
	io.Copy(io.Discard, os.Stdin)
}
