// Command fetch gets URLs, one after another, and prints the protocol, the status and the digest of each body.
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	for _, url := range os.Args[1:] {
		r, err := http.Get(url)
		if err != nil {
			fmt.Println(err)
			continue
		}
		h := sha256.New()
		n, err := io.Copy(h, r.Body)
		r.Body.Close()
		fmt.Printf("%s %d %d %x %v\n", r.Proto, r.StatusCode, n, h.Sum(nil)[:8], err)
	}
}
