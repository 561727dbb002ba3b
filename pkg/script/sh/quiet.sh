# quiet LEADER START WATCHER: waits until no member lives, or until the input ends
# because nobody awaits the answer any more.
exec 3<&0;
( while read -r x <&3; do :; done; kill -KILL $$ ) >/dev/null 2>&1 &
q=$!; exec 3<&-;
while tree "${2#=}" "${3#=}" "${4#=}"; [ -n "$l" ]; do sleep 0.1 2>/dev/null || sleep 1; done;
kill -KILL $q; watcher "${4#=}";
printf "ok\000\000";
