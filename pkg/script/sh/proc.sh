# Head of the programs for processes that live.

# near ID: f = the stat files of all processes that may have this id as parent,
# group or session: to read and part every one in the shell costs far more. A host
# without grep has them all read.
near() { f=$(grep -Fls " $1 " /proc/[0-9]*/stat); [ $? -ne 127 ] || f=$(echo /proc/[0-9]*/stat); };

# tree LEADER START WATCHER: l = the live members of the session or group, without
# the watcher and its children; g = those outside the leader's group. A leader
# with another start time is somebody else's. Nothing counts as nothing only when
# it is seen twice: a parent may fork and end during one look.
tree() { look "$@"; [ -n "$l" ] || look "$@"; };
look() {
  l=; g=; w=$1; b=$3;
  if [ "$2" -gt 0 ] && { read -r x </proc/$1/stat; } 2>/dev/null; then
    begun ${x##*) }; [ "$t" = "$2" ] || return 0;
  fi;
  near $w; for f in $f; do
    { read -r x <$f; } 2>/dev/null || continue;
    p=${f#/proc/}; p=${p%/stat}; set -- ${x##*) };
    case $1 in Z|X|x) continue;; esac;
    [ "$3" = "$w" ] || [ "$4" = "$w" ] || continue;
    [ "$p" = "$b" ] || [ "$2" = "$b" ] && continue;
    l="$l $p"; [ "$3" = "$w" ] || g="$g $p";
  done;
};
begun() { shift 19; t=$1; };

# watcher PID: ends our watcher and its sleep.
watcher() {
  [ "$1" -gt 1 ] || return 0;
  near $1; for f in /proc/$1/stat $f; do
    { read -r x <$f; } 2>/dev/null || continue;
    p=${f#/proc/}; p=${p%/stat}; set -- "$1" ${x##*) };
    if [ "$3" = "$1" ] || { [ "$p" = "$1" ] && [ "$5" = "$w" ]; }; then kill -KILL $p 2>/dev/null; fi;
  done;
};
