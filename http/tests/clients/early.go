// SPDX-License-Identifier: MIT
// early.c in Go: go run early.go 8080
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("POST /refuse", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "refused", 401)
	})
	http.HandleFunc("POST /part", func(w http.ResponseWriter, r *http.Request) {
		io.ReadFull(r.Body, make([]byte, 1000))
		http.Error(w, "a part was enough", 403)
	})
	http.HandleFunc("POST /all", func(w http.ResponseWriter, r *http.Request) {
		size, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, size)
	})
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := http.Server{Addr: "127.0.0.1:" + os.Args[1], Protocols: &protocols}
	fmt.Println(server.ListenAndServe())
}
