// SPDX-License-Identifier: MIT

// `server PORT [FOLDER]`: the answer of ../load.c by net/http, on one processor unless GOMAXPROCS is set; over TLS
// with FOLDER's chain.pem and key.pem.
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
	address := "127.0.0.1:" + os.Args[1]
	if len(os.Args) > 2 {
		panic(http.ListenAndServeTLS(address, os.Args[2]+"/chain.pem", os.Args[2]+"/key.pem", nil))
	}
	panic(http.ListenAndServe(address, nil))
}
