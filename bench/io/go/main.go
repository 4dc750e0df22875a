// SPDX-License-Identifier: MIT

// The work of ../work.c in Go: goroutines, channels and timers of the standard library.
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
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

func echo(descriptor int) {
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
			buffer := make([]byte, 16384)
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
	works := map[string]func(int){"spawn": spawn, "yield": yield, "channel": channel, "skynet": skynet,
		"mutex": contest, "timers": timers, "echo": echo}
	threads, _ := strconv.Atoi(os.Args[2])
	count, _ := strconv.Atoi(os.Args[3])
	runtime.GOMAXPROCS(threads)
	begin := time.Now()
	works[os.Args[1]](count)
	fmt.Printf("%.2f\n", float64(time.Since(begin).Nanoseconds())/float64(count))
}
