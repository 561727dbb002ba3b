# send ROOT SUMS: an archive of the files whose names follow on the input, each
# with a NUL; then, after the nonce, their SHA-256 in the same order, a line each.
# With "=n" no archive.
word "$2"; cd "$v" 2>/dev/null || fail notfound;
T=$(umask 077; mktemp -d) || fail sys "cannot make a temporary directory";
trap "rm -rf -- $T" EXIT; trap "exit 1" HUP INT TERM PIPE;
cat >"$T/l";
printf "ok\000";
[ "$3" = "=n" ] || tar --create --null --no-recursion --format=gnu --hard-dereference --files-from="$T/l" 2>/dev/null;
printf "\012%s\012" "$1";
[ -s "$T/l" ] && xargs -0 sha256sum -- <"$T/l" 2>/dev/null;
printf "end\012";
