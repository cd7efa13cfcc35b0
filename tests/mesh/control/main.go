// The control server of a mesh, with its relay and STUN, for tests in network namespaces.
//
// It is Tailscale's own test control server behind a gate that takes each authentication key once, as Headscale
// does with single-use keys: a node that is registered comes back without one.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"strings"

	"tailscale.com/derp/derpserver"
	"tailscale.com/net/stunserver"
	"tailscale.com/tailcfg"
	"tailscale.com/tstest/integration/testcontrol"
	"tailscale.com/types/key"
)

const (
	webPort  = 443
	stunPort = 3478
)

func main() {
	address := flag.String("address", "", "IP address to listen on, ports 443 and 3478")
	certificate := flag.String("certificate", "", "PEM file with the server's certificate for that address")
	certificateKey := flag.String("certificate-key", "", "PEM file with its key")
	authKeys := flag.String("auth-keys", "", "file with the keys that let one machine in each, one a line")
	flag.Parse()
	if err := serve(*address, *certificate, *certificateKey, *authKeys); err != nil {
		log.Fatal(err)
	}
}

func serve(address, certificate, certificateKey, authKeys string) error {
	if net.ParseIP(address) == nil {
		return errors.New("-address is not an IP address")
	}
	keys, err := os.ReadFile(authKeys)
	if err != nil {
		return err
	}
	stun := stunserver.New(context.Background())
	if err := stun.Listen((&net.UDPAddr{IP: net.ParseIP(address), Port: stunPort}).String()); err != nil {
		return err
	}
	go stun.Serve()
	control := &testcontrol.Server{
		ExplicitBaseURL: "https://" + address,
		DERPMap:         relayAt(address),
		AllOnline:       true,
	}
	relay := derpserver.New(key.NewNode(), log.Printf)
	web := http.NewServeMux()
	web.Handle("/derp", derpserver.Handler(relay))
	web.HandleFunc("/derp/probe", derpserver.ProbeHandler)
	web.Handle("/", newGate(control, strings.Fields(string(keys))))
	listener, err := net.Listen("tcp", (&net.TCPAddr{IP: net.ParseIP(address), Port: webPort}).String())
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: web,
		// Both the control protocol and the relay take connections over from HTTP/1.1.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	log.Printf("listening on %s", listener.Addr())
	return server.ServeTLS(listener, certificate, certificateKey)
}

func relayAt(address string) *tailcfg.DERPMap {
	node := &tailcfg.DERPNode{
		Name: "1", RegionID: 1, HostName: address, IPv4: address, IPv6: "none",
		DERPPort: webPort, STUNPort: stunPort, STUNTestIP: address,
	}
	region := &tailcfg.DERPRegion{RegionID: 1, RegionCode: "test", RegionName: "test", Nodes: []*tailcfg.DERPNode{node}}
	return &tailcfg.DERPMap{Regions: map[int]*tailcfg.DERPRegion{1: region}}
}
