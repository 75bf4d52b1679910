// A receiver in Go, with only the standard library. It verifies both kinds of signatures.
//
//	CALLBACK_SECRET=whsec_… PORT=8090 go run examples/receivers/receiver.go
//	CALLBACK_SECRET=whpk_… PORT=8090 go run examples/receivers/receiver.go
package main

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	tolerance = 5 * time.Minute // between our clock and the sender's
	mostBytes = 16 << 20
)

var errNotValid = errors.New("the signature is not valid")

// A Verifier returns whether a signature of its version fits the content.
type Verifier struct {
	version string
	fits    func(content, signature []byte) bool
}

// NewVerifier reads a shared secret, whsec_…, or a public key, whpk_….
func NewVerifier(secret string) (*Verifier, error) {
	prefix, encoded, _ := strings.Cut(secret, "_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	switch {
	case err == nil && prefix == "whsec":
		return &Verifier{"v1", func(content, signature []byte) bool {
			mac := hmac.New(sha256.New, key)
			mac.Write(content)
			return hmac.Equal(mac.Sum(nil), signature)
		}}, nil
	case err == nil && prefix == "whpk" && len(key) == ed25519.PublicKeySize:
		return &Verifier{"v1a", func(content, signature []byte) bool {
			return ed25519.Verify(key, content, signature)
		}}, nil
	}
	return nil, errors.New("CALLBACK_SECRET must be whsec_… or whpk_…")
}

// Verify returns an error unless one of the signatures in the header fits.
func (v *Verifier) Verify(body []byte, header http.Header) error {
	seconds, err := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > tolerance {
		return errNotValid
	}
	content := fmt.Appendf(nil, "%s.%d.%s", header.Get("webhook-id"), seconds, body)
	// While a secret is being replaced, there is a signature with the old one and one with the new one.
	for _, one := range strings.Fields(header.Get("webhook-signature")) {
		version, encoded, _ := strings.Cut(one, ",")
		signature, err := base64.StdEncoding.DecodeString(encoded)
		if err == nil && version == v.version && v.fits(content, signature) {
			return nil
		}
	}
	return errNotValid
}

func main() {
	verifier, err := NewVerifier(os.Getenv("CALLBACK_SECRET"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "8090"
	}
	var handled sync.Map // a real receiver keeps these ids in its database

	http.HandleFunc("/", func(writer http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(writer, request.Body, mostBytes))
		if err == nil {
			err = verifier.Verify(body, request.Header)
		}
		if err != nil {
			answer(writer, http.StatusUnauthorized, map[string]string{"error": err.Error()})
			return
		}
		id := request.Header.Get("webhook-id")
		if _, again := handled.LoadOrStore(id, true); !again {
			fmt.Println("handled", request.Header.Get("duequeue-key"), string(body))
		}
		answer(writer, http.StatusOK, map[string]string{"handled": id})
	})

	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("listening on port", listener.Addr().(*net.TCPAddr).Port)
	fmt.Fprintln(os.Stderr, http.Serve(listener, nil))
}

// answer sends a value as JSON; with the status 200, it is the response to the message.
func answer(writer http.ResponseWriter, status int, value any) {
	writer.Header().Set("Content-Type", "application/json")
	writer.WriteHeader(status)
	_ = json.NewEncoder(writer).Encode(value)
}
