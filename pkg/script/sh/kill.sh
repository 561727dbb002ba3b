# kill LEADER START WATCHER SIGNAL: signals all members. With KILL it looks again
# until nothing new appears.
s=${5#=}; n=0; q=no;
while [ $n -lt 8 ]; do
  tree "${2#=}" "${3#=}" "${4#=}"; [ -n "$l" ] || break;
  kill -$s -${2#=} 2>/dev/null && q=yes;
  for p in $g; do kill -$s $p 2>/dev/null && q=yes; done;
  [ $s = KILL ] || break; n=$((n+1));
done;
[ -n "$l" ] || [ $n -gt 0 ] || q=gone;
[ $s = KILL ] && [ "${4#=}" -gt 1 ] && [ -d /proc/${4#=} ] && kill -KILL ${4#=} 2>/dev/null;
printf "ok\000%s\000" $q;
