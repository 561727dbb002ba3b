# remove PATH FLAG: removes an entry; with the flag "=r" a directory with all that
# is in it, unless it is or holds the home directory.
word "$2"; w=$v;
if [ "$3" = "=r" ]; then
  case $w in /) fail guard;; esac;
  for h in "$HOME" ~; do
    case $h in /?*) canon "$h" && case $k/ in "$w"/*) fail guard;; esac;; esac;
  done;
  e=$(rm -rf -- "$w" 2>&1) || fail sys "$e";
else
  if [ -L "$w" ]; then :; elif [ -d "$w" ]; then fail sys "Is a directory"; elif [ -e "$w" ]; then :; else fail notfound; fi;
  e=$(rm -f -- "$w" 2>&1) || fail sys "$e";
fi;
printf "ok\000";
