#!/usr/bin/env bash
# The provider protocol's own cost, and that of installing. Run by bench.sh.
set -eu
n=${N:-9}
mkdir -p "$WORK/bin"
go build -o "$WORK/bin/protocol" ./scripts/protocol
go build -trimpath -ldflags '-s -w' -o "$WORK/bin/goplugin" ./examples/goplugin

# Calls and streams over one connection to a provider's process, and the same on
# the backend behind it.
"$WORK/bin/protocol" "$PWD/bin/afield" "$WORK"

# Start: the same command through a provider and direct.
cat > "$WORK/external.yaml" <<YAML
version: 1
backend: external
config: {argv: [$PWD/bin/afield, serve, --stdio], env: [AFIELD_STATE_DIR]}
YAML
echo hello > "$WORK/hello"
measure -n 41 "fs stat through serve" "25 ms more" "afield fs stat $WORK/hello" "afield --profile-file $WORK/external.yaml fs stat $WORK/hello"

# plugin add of a 20 MB archive.
mkdir -p "$WORK/large/bin"
cp -R examples/goplugin/plugin.yaml examples/goplugin/schema.json "$WORK/large/"
cp "$WORK/bin/goplugin" "$WORK/large/bin/goplugin"
packed=$(gzip -c "$WORK/large/bin/goplugin" | wc -c)
head -c $((20 * 1024 * 1024 - packed)) /dev/urandom > "$WORK/large/blob"
tar -C "$WORK" -czf "$WORK/large.tgz" large
echo "archive: $(( $(stat -c %s "$WORK/large.tgz") / 1024 )) KiB"
"$WORK/bin/protocol" -serve "$WORK" > "$WORK/address" &
server=$!
trap 'kill $server' EXIT
until [ -s "$WORK/address" ]; do sleep 0.05; done
address=$(cat "$WORK/address")
export AFIELD_DATA_DIR=$WORK/data AFIELD_CACHE_DIR=$WORK/cache
export AFIELD_CONFIG_DIR=$WORK/config
clean="chmod -R u+w $WORK/data 2>/dev/null; rm -rf $WORK/data $WORK/cache $WORK/config $WORK/out; mkdir -p $WORK/out"
measure -n "$n" -sh "plugin add, 20 MB from loopback" "<= 3.0" \
  "$clean; tar -C $WORK/out -xzf $WORK/large.tgz; sha512sum $WORK/large.tgz >/dev/null" \
  "$clean; afield plugin add --no-start -q $address/large.tgz >/dev/null"

# Composition with five plugins: one that is active, and four beside it.
for i in 1 2 3 4 5; do
  mkdir -p "$WORK/p$i/bin"
  sed "s/goplugin/p$i/; s/name: machine/name: m$i/; s/id: machine/id: r$i/" examples/goplugin/plugin.yaml > "$WORK/p$i/plugin.yaml"
  sed -i "s/bin\/p$i/bin\/goplugin/; s/bin\/goplugin/bin\/x/" "$WORK/p$i/plugin.yaml"
  cp examples/goplugin/schema.json "$WORK/p$i/"
  printf '#!/bin/sh\n' > "$WORK/p$i/bin/x"; chmod +x "$WORK/p$i/bin/x"
  afield plugin add --no-start -q --no-activate "$WORK/p$i" >/dev/null
done
measure -n 41 "profile show with 5 plugins" "15 ms more" "afield version" "afield profile show"
