package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"sync"

	"golang.org/x/net/http2"
	"tailscale.com/control/controlhttp/controlhttpserver"
	"tailscale.com/tailcfg"
	"tailscale.com/tstest/integration/testcontrol"
	"tailscale.com/types/key"
)

// longestRequest is far above any registration.
const longestRequest = 1 << 20

// gate ends the machines' encryption in place of the control server, so that it can read registrations.
type gate struct {
	control *testcontrol.Server
	private key.MachinePrivate
	plain   *http.ServeMux
	sealed  *http.ServeMux

	mu     sync.Mutex
	unused map[string]bool
	used   map[string]bool
}

func newGate(control *testcontrol.Server, authKeys []string) *gate {
	g := &gate{
		control: control,
		private: key.NewMachine(),
		plain:   http.NewServeMux(),
		sealed:  http.NewServeMux(),
		unused:  map[string]bool{},
		used:    map[string]bool{},
	}
	for _, authKey := range authKeys {
		g.unused[authKey] = true
	}
	g.plain.HandleFunc("/key", g.serveKey)
	g.plain.HandleFunc("/ts2021", g.serveSealed)
	g.plain.Handle("/", http.NotFoundHandler())
	g.sealed.HandleFunc("/machine/register", g.serveRegister)
	g.sealed.Handle("/machine/", control)
	g.sealed.Handle("/", http.NotFoundHandler())
	return g
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.plain.ServeHTTP(w, r)
}

func (g *gate) serveKey(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	public := tailcfg.OverTLSPublicKeyResponse{
		// A machine takes a server without the old kind of key for one that has not started.
		LegacyPublicKey: g.private.Public(),
		PublicKey:       g.private.Public(),
	}
	if err := json.NewEncoder(w).Encode(public); err != nil {
		log.Printf("tell the key: %v", err)
	}
}

func (g *gate) serveSealed(w http.ResponseWriter, r *http.Request) {
	conn, err := controlhttpserver.AcceptHTTP(r.Context(), w, r, g.private, nil)
	if err != nil {
		log.Printf("accept a machine: %v", err)
		return
	}
	defer conn.Close()
	var server http2.Server
	server.ServeConn(conn, &http2.ServeConnOpts{
		Context:    fromMachine{r.Context(), conn.Peer()},
		BaseConfig: &http.Server{Handler: g.sealed},
	})
}

func (g *gate) serveRegister(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, longestRequest))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var request tailcfg.RegisterRequest
	if err := json.Unmarshal(body, &request); err != nil || request.Hostinfo == nil {
		http.Error(w, "not a registration", http.StatusBadRequest)
		return
	}
	if refusal := g.refusal(&request); refusal != "" {
		log.Printf("refused %s: %s", request.Hostinfo.Hostname, refusal)
		if err := json.NewEncoder(w).Encode(tailcfg.RegisterResponse{Error: refusal}); err != nil {
			log.Printf("answer a registration: %v", err)
		}
		return
	}
	log.Printf("registered %s", request.Hostinfo.Hostname)
	r.Body = io.NopCloser(bytes.NewReader(body))
	g.control.ServeHTTP(w, r)
}

// refusal says why a machine may not come in, and takes its key if it may.
func (g *gate) refusal(request *tailcfg.RegisterRequest) string {
	if g.control.Node(request.NodeKey) != nil {
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case request.Auth == nil || request.Auth.AuthKey == "":
		return "no authkey"
	case g.used[request.Auth.AuthKey]:
		return "authkey already used"
	case !g.unused[request.Auth.AuthKey]:
		return "authkey not found"
	}
	delete(g.unused, request.Auth.AuthKey)
	g.used[request.Auth.AuthKey] = true
	return ""
}

// fromMachine hands the machine's key on to the control server, which looks for it under a key of a private type.
type fromMachine struct {
	context.Context
	machine key.MachinePublic
}

func (c fromMachine) Value(name any) any {
	if fmt.Sprintf("%T", name) == "testcontrol.peerMachinePublicContextKey" {
		return c.machine
	}
	return c.Context.Value(name)
}
