//go:build test_performance

// Package scheduling_test joins the benchmark that the Karpenter module ships, whose pods, types and set-up it calls.
package scheduling_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/fake"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/test"
)

// The suite of that package declares these, and the benchmark sets them.
var (
	ctx           context.Context
	cluster       *state.Cluster
	cloudProvider *fake.CloudProvider
)

// Where everything is left for the caller: types.json, and for each mix pods-N.json and solved-N.json.
var folder = os.Getenv("SCARPENTER_BENCH_FOLDER")

type offering struct {
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
	MicroUSD     int64  `json:"microUsd"`
}

type instanceType struct {
	Name        string            `json:"name"`
	Allocatable map[string]string `json:"allocatable"`
	Capacity    map[string]string `json:"capacity"`
	Offerings   []offering        `json:"offerings"`
}

type solved struct {
	Seconds     []float64 `json:"seconds"`
	Nodes       int       `json:"nodes"`
	MicroUSD    int64     `json:"microUsd"`
	Unscheduled int       `json:"unscheduled"`
}

func TestExportTypes(t *testing.T) {
	var types []instanceType
	for _, each := range fake.InstanceTypes(400) {
		out := instanceType{
			Name:        each.Name,
			Allocatable: quantities(each.Allocatable()),
			Capacity:    quantities(each.Capacity),
		}
		for _, own := range each.Offerings.Available() {
			out.Offerings = append(out.Offerings, offering{
				Zone:         own.Requirements.Get(corev1.LabelTopologyZone).Any(),
				CapacityType: own.Requirements.Get(v1.CapacityTypeLabelKey).Any(),
				MicroUSD:     micro(own.Price),
			})
		}
		types = append(types, out)
	}
	write(t, "types.json", types)
}

func TestSolve(t *testing.T) {
	count, runs := number(t, "SCARPENTER_BENCH_PODS"), number(t, "SCARPENTER_BENCH_RUNS")
	pods := makeDiversePods(count)
	write(t, "pods-"+strconv.Itoa(count)+".json", pods)
	var out solved
	for range runs {
		out = solve(t, pods, out.Seconds)
	}
	write(t, "solved-"+strconv.Itoa(count)+".json", out)
}

// Set-up is not timed, as in the shipped benchmark; each run has a scheduler of its own, so that no run meets the machines
// of the one before.
func solve(t *testing.T, pods []*corev1.Pod, before []float64) solved {
	solving := options.ToContext(injection.WithControllerName(context.Background(), "provisioner"), test.Options())
	scheduler, err := setupScheduler(solving, pods, scheduling.NumConcurrentReconciles(5))
	if err != nil {
		t.Fatalf("set up the scheduler: %s", err)
	}
	start := time.Now()
	results, err := scheduler.Solve(solving, pods)
	took := time.Since(start).Seconds()
	if err != nil {
		t.Fatalf("solve: %s", err)
	}
	out := solved{Seconds: append(before, took), Nodes: len(results.NewNodeClaims), Unscheduled: len(results.PodErrors)}
	for _, claim := range results.NewNodeClaims {
		out.MicroUSD += cheapest(t, claim)
	}
	return out
}

// What is launched is the cheapest offering of those that the claim leaves open.
func cheapest(t *testing.T, claim *scheduling.NodeClaim) int64 {
	least := int64(math.MaxInt64)
	for _, each := range claim.InstanceTypeOptions {
		for _, own := range each.Offerings.Available().Compatible(claim.Requirements) {
			least = min(least, micro(own.Price))
		}
	}
	if least == math.MaxInt64 {
		t.Fatalf("a claim with %d pods has no offering", len(claim.Pods))
	}
	return least
}

func micro(usd float64) int64 { return int64(math.Round(usd * 1e6)) }

func quantities(list corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, amount := range list {
		out[string(name)] = amount.String()
	}
	return out
}

func number(t *testing.T, name string) int {
	out, err := strconv.Atoi(os.Getenv(name))
	if err != nil || out < 1 {
		t.Fatalf("%s is not a number of at least 1: %q", name, os.Getenv(name))
	}
	return out
}

func write(t *testing.T, name string, value any) {
	text, err := json.Marshal(value)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name), text, 0o600)
	}
	if err != nil {
		t.Fatalf("write %s: %s", name, err)
	}
}
