#!/bin/sh
# Makes the archives of a plugin: one for each platform where it is written in
# Go, else one for all, with their checksums beside them.
#
#   pack.sh NAME OUT [OS/ARCH...]
#
# Run it in the directory that holds plugin.yaml or package.json.
set -eu
name=$1 out=$2
shift 2
[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# stage copies what every archive holds.
stage() {
	rm -rf "$work/$name"
	mkdir "$work/$name"
	for f in plugin.yaml package.json *.json *.py *.mjs *.js LICENSE README.md; do
		[ ! -f "$f" ] || cp "$f" "$work/$name/"
	done
}

if ls ./*.go >/dev/null 2>&1; then
	for platform; do
		stage
		CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} \
			go build -trimpath -ldflags '-s -w' -o "$work/$name/bin/$name" .
		tar -C "$work" -czf "$out/${name}_${platform%/*}_${platform#*/}.tgz" "$name"
	done
else
	stage
	tar -C "$work" -czf "$out/$name.tgz" "$name"
fi
cd "$out"
sha256sum ./*.tgz | sed 's, \./,  ,; s,   ,  ,' > SHA256SUMS
