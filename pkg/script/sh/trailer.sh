# trailer FILE NONCE: takes the last 118 bytes off a file: the nonce, the size and
# the SHA-256 of what is before them. Content whose connection was cut has none.
trailer() {
  set -f; set -- "$1" "$2" $(tail -c 118 -- "$1" | tr -d "\000");
  [ "$2" = "$3" ] && [ $# = 5 ] || fail short;
  e=$(dd if=/dev/null of="$1" bs=1 seek="$4" conv=fsync 2>&1) || fail sys "$e";
  set -- "$4" "$5" $(stat -c %s -- "$1") $(sha256sum <"$1");
  [ "$1 $2" = "$3 $4" ] || fail short;
};
