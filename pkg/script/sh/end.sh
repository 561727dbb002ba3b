# end LEADER START WATCHER TENTHS: TERM, grace, KILL, proof, and then the end of the
# watcher. Prints who survived.
now() { read -r y x </proc/uptime; y=${y%.*}${y#*.}; y=${y#"${y%%[1-9]*}"}; };
hit() {
  kill -$1 -$i 2>/dev/null;
  for p in $g; do kill -$1 $p 2>/dev/null; done;
};
nap() { sleep 0.05 2>/dev/null || sleep 1; };
i=${2#=}; tree $i "${3#=}" "${4#=}";
if [ -n "$l" ]; then
  hit TERM; now; n=$((y+${5#=}0));
  while tree $i "${3#=}" "${4#=}"; [ -n "$l" ]; do now; [ $y -lt $n ] || break; nap; done;
fi;
n=0;
while [ -n "$l" ] && [ $n -lt 100 ]; do hit KILL; nap; tree $i "${3#=}" "${4#=}"; n=$((n+1)); done;
if [ -z "$l" ]; then watcher "${4#=}"; fi;
printf "ok\000%s\000" "$l";
