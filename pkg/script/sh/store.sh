# store PATH FLAG INTENT GUARD MODE NEWMODE [READY]: a guarded write whose size and digest
# come behind the content. It tells the canonical path and whether something is
# there, and goes on when it has read a line; what is refused is refused before
# the content is taken. MODE is "=-" to keep that of the replaced file, NEWMODE is
# that of a new file. INTENT is n, c or r, with i behind it to write through the
# open file. With READY it says when the content may come.
at "$2" "$3"; facts "$k"; printf "%s\000%s\000" "$k" "${s:+y}";
IFS= read -r x || exit 1;
facts "$k"; b=$s; regular "$b"; token "$b"; q=$p; j=$6;
case $m in a*) b=;; esac;
if [ -z "$b" ] && [ "$j" = "=-" ]; then j=$7; fi;
case $4 in
=c*) [ -z "$s" ] || fail exists;;
=r*) [ -n "$b" ] || fail gone; [ "=$t" = "$5" ] || fail stale;;
esac;
case $4 in
*i)
  d=${k%/*}; [ -d "${d:-/}" ] || e=$(mkdir -p -- "$d" 2>&1) || fail sys "$e";
  [ -z "$8" ] || printf "ready\000";
  e=$(dd of="$k" conv=fsync bs=128k 2>&1) || fail sys "$e";
  trailer "$k" "$1";
  [ "$j" = "=-" ] || chmod "${j#=}" -- "$k";
  facts "$k"; token "$s";;
*)
  open_stage "$1" "$b"; chmod 600 -- "$S";
  [ -z "$8" ] || printf "ready\000";
  e=$(dd of="$S" conv=notrunc,fsync bs=128k 2>&1) || fail sys "$e";
  trailer "$S" "$1";
  if [ "$j" = "=-" ]; then [ -n "$b" ] || q="=rw"; else q=${j#=}; fi;
  e=$(chmod "$q" -- "$S" 2>&1) || fail sys "$e"; staged;
  case $4 in =r*) facts "$k"; token "$s"; [ "=$t" = "$5" ] || fail stale;; esac;
  publish "${4#=}";;
esac;
if [ -n "$b" ]; then x=update; else x=create; fi;
printf "ok\000%s\000%s\000%s\000" "$k" "$x" "$t";
