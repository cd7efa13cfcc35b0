#!/bin/sh
# Puts /machine.tar of a tree into the tree's own containerd, in mount and process namespaces that end with this script.
set -eu
exec unshare --mount --pid --fork --kill-child sh -eu -c '
  mount --make-rprivate /
  mount -t proc proc "$0/proc"
  mount -t tmpfs run "$0/run"
  mount -t tmpfs tmp "$0/tmp"
  mount --bind /dev "$0/dev"
  chroot "$0" /usr/bin/containerd --log-level error &
  containerd=$!
  for try in $(seq 100); do
    [ ! -S "$0/run/containerd/containerd.sock" ] || break
    sleep 0.1
  done
  chroot "$0" /usr/bin/ctr --namespace k8s.io images import --snapshotter overlayfs /machine.tar
  kill $containerd
  wait $containerd || true
' "$1"
