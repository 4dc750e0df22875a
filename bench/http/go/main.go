// SPDX-License-Identifier: MIT

// `server PORT`: the answer of ../load.c by net/http, on one processor unless GOMAXPROCS says how many.
package main

import (
	"net/http"
	"os"
	"runtime"
	"strings"
)

func main() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	body := []byte(strings.Repeat("x", 1024))
	http.HandleFunc("/", func(response http.ResponseWriter, _ *http.Request) {
		response.Header().Set("Content-Type", "text/plain")
		response.Write(body)
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
