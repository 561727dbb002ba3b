# front LEADER START SIGNAL: finds the foreground group of the leader's terminal,
# signals it, and tells the group and what kill itself answered. The leader's own
# group is not killed: "own".
begun() { shift 19; t=$1; };
q=0; i=${2#=}; r=gone;
{ read -r x </proc/$i/stat; } 2>/dev/null && { begun ${x##*) }; [ "${3#=}" = 0 ] || [ "$t" = "${3#=}" ]; } && { set -- "$1" "$2" "$3" "$4" ${x##*) }; q=${10}; };
[ "$q" -gt 1 ] || q=0;
if [ "$q" = 0 ]; then :;
elif [ "$q" = "$i" ] && [ "$4" = "=KILL" ]; then r=own;
elif { kill -s ${4#=} -- -$q || kill -s ${4#=} -$q; } 2>/dev/null; then r=yes;
else r=no; fi;
printf "ok\000%s\000%s\000" "$q" $r;
