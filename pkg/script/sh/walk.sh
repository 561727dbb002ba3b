# walk PATH FLAG DEPTH SKIP...: everything below a directory, a record each; then
# an empty field and what could not be looked at. The first form has NUL after the
# facts and the path and after the text of a link; the second, without GNU find,
# has records of stat that end with "//" and a newline, which no path can hold.
# With the flag "=n" the facts are the type alone.
word "$2"; k=$v; n=$3; D=${4#=}; shift 4;
if [ -d "$k" ]; then cd "$k" 2>/dev/null || fail sys "Permission denied"; else
  facts "$k" -L; [ -n "$s" ] || fail notfound; fail notdir;
fi;
m=; [ "$D" = 0 ] || m="-maxdepth $D";
i=$#; while [ $i -gt 0 ]; do word "$1"; shift; set -- "$@" -name "$v" -prune -o; i=$((i-1)); done;
set -- -mindepth 1 $m -name ".afield-*.tmp" -prune -o "$@";
if find . -maxdepth 0 -printf "" 2>/dev/null; then
  printf "ok\000p\000";
  if [ "$n" = "=n" ]; then set -- "$@" -printf "%y %P\000\000";
  else set -- "$@" -printf "%y %m %s %T@ %i:%s:%T@:%C@ %P\000%l\000"; fi;
  { e=$(find . "$@" 2>&1 >&3 3>&-) || :; } 3>&1;
  printf "\000%s\000end\000" "$e";
else
  printf "ok\000s\000";
  { e=$(find . "$@" -exec stat -c "%f %a %s %Y %y %z %i %n//" -- {} + 2>&1 >&3 3>&-) || :; } 3>&1;
  printf "\000";
  find . "$@" -type l -exec printf "%s\000" {} ";" -exec readlink -n {} ";" -exec printf "\000" ";" 2>/dev/null;
  printf "\000%s\000end\000" "$e";
fi;
