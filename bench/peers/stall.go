// stall_read and stall_fault of bench/block.c as a Go program on one processor of Go's, with the same result line.
//
//	upcall-bench-go NAME --worker FILE [--scale X]
//
// The worker is the process that ends the stalls. Goroutines block in the kernel itself: read(2) on a descriptor that Go's
// poller does not know, as with a file on a disk, and a page fault.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	page       = 4096
	stall      = 50 * time.Millisecond
	mostStalls = 60
	// Exit statuses of the worker.
	wrong = 1
	usage = 2
	limit = 3
)

var (
	begin          = time.Now()
	blocked, over  atomic.Bool
	longest        atomic.Int64 // gap between two looks at the clock in the current stall
	last           atomic.Int64 // look at the clock
	finished       = make(chan bool)
	request, reply [2]int
	area           []byte
	faultFd        = -1 // the userfaultfd
)

func fail(status int, format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(status)
}

func expect(err error, what string) {
	if err != nil {
		fail(wrong, "%s: %v", what, err)
	}
}

func now() int64 { return int64(time.Since(begin)) }

func computeAndWatch() {
	before := now()
	for !over.Load() {
		t := now()
		if !blocked.Load() {
			longest.Store(0)
		} else if t-before > longest.Load() {
			longest.Store(t - before)
		}
		before = t
		last.Store(t)
	}
	finished <- true
}

// The gap that lasts until the stall ends counts, too.
func longestGap(end int64) int64 {
	gap := longest.Load()
	if rest := end - last.Load(); rest > gap {
		return rest
	}
	return gap
}

func measureStalls(name string, block func(int), count int) {
	var gaps []int64
	go computeAndWatch()
	for last.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	for i := 0; i < count; i++ {
		time.Sleep(3 * time.Millisecond) // the other one runs
		blocked.Store(true)
		from := now()
		block(i)
		end := now()
		gaps = append(gaps, longestGap(end))
		blocked.Store(false)
		if end-from <= int64(stall/2) {
			fail(wrong, "stall: blocked for %d us only", (end-from)/1000)
		}
	}
	over.Store(true)
	<-finished
	sort.Slice(gaps, func(i, j int) bool { return gaps[i] < gaps[j] })
	fmt.Printf(`{"name":"%s","unit":"us","value":%.6g,"count":%d,"checked":true,"upcall":false,`+
		`"runtime":"%s","details":{"longest_us":%.6g}}`+"\n",
		name, float64(gaps[count/2])/1000, count, runtime.Version(), float64(gaps[count-1])/1000)
}

func ask(what uint64) {
	n, err := syscall.Write(request[1], (*[8]byte)(unsafe.Pointer(&what))[:])
	if n != 8 {
		fail(wrong, "stall: write: %v", err)
	}
}

func blockInRead(i int) {
	var answer uint64
	ask(uint64(i) + 1)
	n, err := syscall.Read(reply[0], (*[8]byte)(unsafe.Pointer(&answer))[:])
	if n != 8 || answer != uint64(i)+1 {
		fail(wrong, "stall: wrong answer: %d bytes, %v", n, err)
	}
}

func blockInFault(i int) {
	ask(uint64(uintptr(unsafe.Pointer(&area[i*page]))))
	if area[i*page] != 'u' {
		fail(wrong, "stall: wrong page")
	}
}

func control(what uintptr, argument unsafe.Pointer) {
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(faultFd), what, uintptr(argument)); e != 0 {
		fail(wrong, "userfaultfd: %v", e)
	}
}

func openFaultArea() {
	const sysUserfaultfd, userModeOnly = 323, 1
	const api, register, missing = 0xc018aa3f, 0xc020aa00, 1
	fd, _, e := syscall.Syscall(sysUserfaultfd, syscall.O_CLOEXEC|userModeOnly, 0, 0)
	if e != 0 {
		fail(limit, "userfaultfd: %v", e)
	}
	faultFd = int(fd)
	hello := struct{ api, features, calls uint64 }{api: 0xaa}
	control(api, unsafe.Pointer(&hello))
	var err error
	area, err = syscall.Mmap(-1, 0, mostStalls*page, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	expect(err, "mmap")
	wanted := struct{ start, length, mode, calls uint64 }{
		uint64(uintptr(unsafe.Pointer(&area[0]))), uint64(len(area)), missing, 0}
	control(register, unsafe.Pointer(&wanted))
}

// The worker ends with its input, when this process has ended.
func startAnswers(worker string) {
	expect(syscall.Pipe2(request[:], syscall.O_CLOEXEC), "pipe")
	expect(syscall.Pipe2(reply[:], syscall.O_CLOEXEC), "pipe")
	files, words := []uintptr{uintptr(request[0]), uintptr(reply[1]), 2}, []string{worker, "answer"}
	if faultFd >= 0 {
		files, words = append(files, uintptr(faultFd)), append(words, "pages")
	}
	_, err := syscall.ForkExec(worker, words, &syscall.ProcAttr{Env: os.Environ(), Files: files})
	expect(err, worker)
}

func main() {
	if len(os.Args) < 4 || len(os.Args)%2 != 0 {
		fail(usage, "usage: upcall-bench-go NAME --worker FILE [--scale X]")
	}
	worker, scale := "", 1.0
	for i := 2; i < len(os.Args); i += 2 {
		var err error
		switch os.Args[i] {
		case "--worker":
			worker = os.Args[i+1]
		case "--scale":
			if scale, err = strconv.ParseFloat(os.Args[i+1], 64); err != nil || !(scale > 0 && scale <= 1e7) {
				fail(usage, "--scale: bad value '%s'; a positive number is accepted", os.Args[i+1])
			}
		default:
			fail(usage, "unknown option %s; --worker FILE and --scale X are accepted", os.Args[i])
		}
	}
	count := int(12 * scale)
	if count < 3 {
		count = 3
	}
	if count > mostStalls {
		count = mostStalls
	}
	runtime.GOMAXPROCS(1)
	switch os.Args[1] {
	case "stall_read":
		startAnswers(worker)
		measureStalls("stall_read", blockInRead, count)
	case "stall_fault":
		openFaultArea()
		startAnswers(worker)
		measureStalls("stall_fault", blockInFault, count)
	default:
		fail(usage, "unknown benchmark %s; stall_read and stall_fault are known", os.Args[1])
	}
}
