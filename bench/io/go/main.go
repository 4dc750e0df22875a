// SPDX-License-Identifier: MIT

// The work of ../work.c in Go: goroutines, channels and timers of the standard library.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

func spawn(count int) {
	const batch = 100
	for i := 0; i < count; i += batch {
		var all sync.WaitGroup
		all.Add(batch)
		for j := 0; j < batch; j++ {
			go all.Done()
		}
		all.Wait()
	}
}

func yield(count int) {
	half := func() {
		for i := 0; i < count; i += 2 {
			runtime.Gosched()
		}
	}
	done := make(chan struct{})
	go func() { half(); close(done) }()
	half()
	<-done
}

func channel(count int) {
	there, back := make(chan int, 1), make(chan int, 1)
	go func() {
		for ball := range there {
			back <- ball
		}
		close(back)
	}()
	for i := 0; i < count; i++ {
		there <- i
		<-back
	}
	close(there)
	<-back
}

// The two keep threads of the system of their own.
func apart(count int) {
	there, back := make(chan int, 1), make(chan int, 1)
	ready := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(ready)
		for ball := range there {
			back <- ball
		}
		close(back)
	}()
	runtime.LockOSThread()
	<-ready
	begin := time.Now()
	for i := 0; i < count; i++ {
		there <- i
		<-back
	}
	measuredApart = time.Since(begin).Nanoseconds()
	close(there)
	<-back
}

func sum(result chan<- int, first, size int) {
	if size == 1 {
		result <- first
		return
	}
	parts := make(chan int, 10)
	for i := 0; i < 10; i++ {
		go sum(parts, first+i*(size/10), size/10)
	}
	total := 0
	for i := 0; i < 10; i++ {
		total += <-parts
	}
	result <- total
}

func skynet(count int) {
	result := make(chan int, 1)
	sum(result, 0, count)
	if <-result != count*(count-1)/2 {
		panic("wrong sum")
	}
}

func contest(count int) {
	const contestants = 1000
	var mutex sync.Mutex
	var all sync.WaitGroup
	all.Add(contestants)
	for i := 0; i < contestants; i++ {
		go func() {
			for j := 0; j < count/contestants; j++ {
				mutex.Lock()
				if j%10 == 0 {
					runtime.Gosched()
				}
				mutex.Unlock()
			}
			all.Done()
		}()
	}
	all.Wait()
}

func timers(count int) {
	begin := time.Now()
	cancel := make(chan struct{})
	var all sync.WaitGroup
	all.Add(count)
	for i := 0; i < count; i++ {
		go func(number int) {
			defer all.Done()
			timer := time.NewTimer(time.Until(begin.Add(time.Duration(number%500) * time.Millisecond)))
			if number%2 == 0 {
				<-timer.C
				return
			}
			select {
			case <-timer.C:
			case <-cancel:
				timer.Stop()
			}
		}(i + 1)
	}
	runtime.Gosched()
	close(cancel)
	all.Wait()
}

type creature struct {
	colour  int
	partner chan int
}

func chameneos(count int) {
	asking := make(chan *creature, 10)
	var all sync.WaitGroup
	creatures := make([]*creature, 10)
	done := make(chan struct{})
	for i := range creatures {
		self := &creature{i % 3, make(chan int, 1)}
		creatures[i] = self
		all.Add(1)
		go func() {
			defer all.Done()
			for {
				select {
				case asking <- self:
				case <-done:
					return
				}
				other, open := <-self.partner
				if !open {
					return
				}
				if self.colour != other {
					self.colour = 3 - self.colour - other
				}
			}
		}()
	}
	for i := 0; i < count; i++ {
		one, other := <-asking, <-asking
		colour := one.colour
		one.partner <- other.colour
		other.partner <- colour
	}
	close(done)
	for _, one := range creatures {
		close(one.partner)
	}
	all.Wait()
}

var measuredApart int64

func cancel(count int) {
	for i := 0; i < count; i += 100 {
		ctx, stop := context.WithCancel(context.Background())
		var all sync.WaitGroup
		all.Add(100)
		for j := 0; j < 100; j++ {
			go func() {
				defer all.Done()
				timer := time.NewTimer(1000 * time.Hour)
				select {
				case <-timer.C:
				case <-ctx.Done():
					timer.Stop()
				}
			}()
		}
		for j := 0; j < 3; j++ {
			runtime.Gosched()
		}
		since := time.Now()
		stop()
		all.Wait()
		measuredApart += time.Since(since).Nanoseconds()
	}
}

func switches() int64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return usage.Nvcsw
}

func nothing(count int) {
	time.Sleep(100 * time.Millisecond)
	before := switches()
	time.Sleep(time.Duration(count) * time.Millisecond)
	measuredApart = (switches() - before) * int64(count)
}

func compute() {
	for {
		for begin := time.Now(); time.Since(begin) < time.Millisecond; {
		}
		runtime.Gosched()
	}
}

func echo(descriptor int) {
	computing, _ := strconv.Atoi(os.Getenv("COMPUTING"))
	for i := 0; i < computing; i++ {
		go compute()
	}
	size := 16384
	if text := os.Getenv("BUFFER"); text != "" {
		size, _ = strconv.Atoi(text)
	}
	listener, err := net.FileListener(os.NewFile(uintptr(descriptor), "listener"))
	if err != nil {
		panic(err)
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		go func() {
			defer connection.Close()
			buffer := make([]byte, size)
			for {
				got, err := connection.Read(buffer)
				if err != nil {
					return
				}
				if _, err = connection.Write(buffer[:got]); err != nil {
					return
				}
			}
		}()
	}
}

func main() {
	works := map[string]func(int){"spawn": spawn, "yield": yield, "channel": channel, "apart": apart, "skynet": skynet,
		"mutex": contest, "timers": timers, "echo": echo, "chameneos": chameneos,
		"cancel": cancel, "nothing": nothing}
	threads, _ := strconv.Atoi(os.Args[2])
	count, _ := strconv.Atoi(os.Args[3])
	runtime.GOMAXPROCS(threads)
	begin := time.Now()
	works[os.Args[1]](count)
	took := time.Since(begin).Nanoseconds()
	if measuredApart != 0 {
		took = measuredApart
	}
	fmt.Printf("%.2f\n", float64(took)/float64(count))
}
