#!/bin/sh
# One layer with a static busybox, as an archive that containerd imports: container-image.sh BUSYBOX WORK OUT NAME...
# It sleeps unless told otherwise, so it serves as the sandbox's image too; no registry is needed.
set -eu
busybox=$1 work=$2 out=$3
shift 3
mkdir -p "$work/layer/bin" "$work/archive"
cp "$busybox" "$work/layer/bin/busybox"
for name in sh sleep echo cat ls id wget httpd; do
  ln -s busybox "$work/layer/bin/$name"
done
reproducible="--sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner"
tar $reproducible -C "$work/layer" -cf "$work/archive/layer.tar" bin
layer=$(sha256sum "$work/archive/layer.tar" | cut -d' ' -f1)
printf '{"architecture":"amd64","os":"linux","config":{"Entrypoint":["/bin/sleep","2147483"],"Env":["PATH=/bin"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
  "$layer" >"$work/config.json"
config=$(sha256sum "$work/config.json" | cut -d' ' -f1)
mv "$work/config.json" "$work/archive/$config.json"
names=
for name in "$@"; do
  names="$names${names:+,}\"$name\""
done
printf '[{"Config":"%s.json","RepoTags":[%s],"Layers":["layer.tar"]}]' "$config" "$names" >"$work/archive/manifest.json"
tar $reproducible -C "$work/archive" -cf "$out" manifest.json "$config.json" layer.tar
