# signal LEADER START GROUP SIGNAL: signals one group of the leader's session, and
# proves the delivery by the answer of kill itself.
g=${4#=}; q=gone;
for f in /proc/[0-9]*/stat; do
  { read -r x <$f; } 2>/dev/null || continue;
  set -- "$1" "$2" "$3" "$4" "$5" ${x##*) };
  if [ "$8" = "$g" ] && [ "$9" = "${2#=}" ]; then q=there; break; fi;
done;
[ $q = there ] && { if kill -${5#=} -$g 2>/dev/null; then q=yes; else q=no; fi; };
printf "ok\000%s\000" $q;
